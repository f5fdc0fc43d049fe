"""The peak of a device in a precision: which probes a suite needs, and what they found.

The peak belongs to the device, not to the framework that reached it: the fastest products of any
framework on the same machine, accelerator and cores are what all are measured against.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from . import json_files
from .certify import free_name
from .commands import common, words
from .machines import UNKNOWN, Identity, identity, same
from .plan import Plan, duration, request
from .record_files import hardware_label, read
from .run import Problem, Run, cause

FORMAT = "framebench-probe-1"
#: Rough wall time of one, most of it for the import.
SECONDS = 5.0


class Probe(NamedTuple):
    """One framework multiplying matrices in one precision, on one device. ``model`` is any that
    the framework runs in the suite: what it says of itself may depend on the products it has."""

    framework: str
    precision: str
    model: str
    sequence_length: int | None

    def __str__(self) -> str:
        return f"{self.framework} {self.precision}"


@dataclass(frozen=True)
class Peak:
    """What one probe reached: ``tflops`` are 10^12 floating-point operations per second, of
    products in ``dtype`` of matrices with ``size`` rows, None unless ``status`` is ok."""

    framework: str
    framework_version: str
    hardware: str
    accelerator: str
    cores: int | None
    precision: str
    status: str
    reason: str
    tflops: float | None
    dtype: str
    size: int
    machine: Identity = UNKNOWN

    @property
    def by(self) -> str:
        """Who reached it: framework, version, dtype, rows of the matrices."""
        return f"{self.framework} {self.framework_version} {self.dtype} {self.size}"


class Peaks:
    """The peaks of devices, by what a run tells of its device."""

    def __init__(self, found: Iterable[Peak] = ()) -> None:
        self._found: dict[tuple[str, ...], list[Peak]] = defaultdict(list)
        for peak in found:
            key = (peak.hardware, _variant(peak.accelerator, peak.cores), peak.precision)
            if peak.tflops:
                self._found[key].append(peak)

    def of(self, run: Run) -> Peak | None:
        """The highest on this machine, accelerator and number of cores, in this precision."""
        if run.source != "framebench" or not run.hardware:
            return None
        tokens = run.variant.split(";")
        place = ";".join(t for t in tokens if t == tokens[0] or t.startswith("cores="))
        there = self._found.get((run.hardware, place, run.precision), [])
        here = [peak for peak in there if same(peak.machine, run.machine)]
        return max(here, key=lambda peak: peak.tflops or 0.0, default=None)


def _variant(accelerator: str, cores: int | None) -> str:
    """As in the variant of a run."""
    if accelerator != "cpu" or cores is None:
        return accelerator
    return f"{accelerator};cores={cores}"


def wanted(plan: Plan) -> list[Probe]:
    """One for each framework and precision of the plan."""
    found: dict[tuple[str, str], Probe] = {}
    for case in plan.cases:
        probe = Probe(case.framework, case.precision, case.model, case.sequence_length)
        found.setdefault((case.framework, case.precision), probe)
    return list(found.values())


def names(plan: Plan) -> dict[str, Probe]:
    """The record of each probe, below ``results/probes``, without ``.json``. Its name ends in a
    digest of what decides the result: accelerator, cores and environment."""
    found = {}
    for one in wanted(plan):
        asked = request(one.framework, plan.settings, plan.place, plan.software)
        about = [asked["accelerator"], asked["cores_per_device"], asked["environment"]]
        digest = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:8]
        name = f"{one.framework}/{one.precision}-{digest}"
        found[free_name(plan, "probes", name, FORMAT)] = one
    return found


def describe(plan: Plan, probes: Mapping[str, Probe]) -> str:
    """How many are still to do, and their time; empty where none is."""
    folder = plan.settings.results / "probes"
    missing = [name for name in probes if not (folder / f"{name}.json").exists()]
    if not missing:
        return ""
    time_for_it = duration(SECONDS * len(missing))
    return f"\nProbes of the peak to run, roughly {time_for_it}: {len(missing)}"


def arguments(plan: Plan, one: Probe) -> list[str]:
    """What to probe, as arguments of the harness."""
    named: dict[str, Any] = {
        "framework": f"scripts/frameworks/{one.framework}",
        "model": f"scripts/models/{one.model}.json",
        "mode": "inference",
        "batch-per-device": 1,
        "sequence-length": one.sequence_length,
        "precision": one.precision,
        **common(plan, SECONDS),
    }
    return [*words(named), "--probe"]


def load(folder: Path) -> tuple[list[Peak], list[Problem]]:
    """What the probes below ``folder`` found, and files that are none."""
    found = []
    files, problems = json_files.below(folder)
    for path in files:
        try:
            found.append(_peak(read(path, FORMAT)))
        except (OSError, ValueError) as error:
            problems.append(Problem(json_files.origin_of(path, folder), cause(error)))
    return found, [Problem(f"{folder.name}/{one.origin}", one.message) for one in problems]


def _peak(record: Mapping[str, Any]) -> Peak:
    """Raises ValueError for an ok record without a product that took time."""
    tflops, size, dtype = None, 0, ""
    if record["status"] == "ok":
        tflops, size, dtype = _reached(record["ranks"])
    settings = record["settings"]
    hardware = hardware_label(record["environment"]["hardware"])
    return Peak(
        framework=record["case"]["framework"],
        framework_version=record["framework_version"],
        hardware=hardware,
        accelerator=settings["accelerator"],
        cores=settings["cores_per_device"],
        precision=record["case"]["precision"],
        status=record["status"],
        reason=record["reason"],
        tflops=tflops,
        dtype=dtype,
        size=size,
        machine=identity(record["environment"], hardware),
    )


def _reached(ranks: Sequence[Mapping[str, Any]]) -> tuple[float, int, str]:
    """The highest rate of the one rank, at which size, and the dtype of its products."""
    if len(ranks) != 1:
        raise ValueError(f"is an ok probe of {len(ranks)} ranks; allowed: 1")
    blocks = ranks[0].get("probe", ())
    if not blocks or not all(block["seconds"] and min(block["seconds"]) for block in blocks):
        raise ValueError("is an ok probe without products that took time")
    dtypes = list(ranks[0].get("products", ()))
    if len(dtypes) != 1:
        raise ValueError(f"is an ok probe with products in {dtypes}; allowed: one dtype")
    tflops, size = max((tflops_of(block), int(block["size"])) for block in blocks)
    return tflops, size, str(dtypes[0])


def tflops_of(block: Mapping[str, Any]) -> float:
    """A product of two matrices of n rows takes n^3 multiplications and as many additions."""
    return float(2e-12 * block["size"] ** 3 * block["products"] / min(block["seconds"]))
