"""Peak FLOPS of a device in a precision: as measured by the peak-FLOPS benchmark, and by the data
sheets of GPUs.

The measured peak belongs to the device, not to a framework: the fastest matmul of any framework on
the same machine, accelerator and cores, with the same number of busy devices, is the bound for all.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from core import bounded

from ..cases.conditions import OURS, conditions_from_settings
from ..files.json_files import Problem
from ..machine.identities import UNKNOWN, Identity, identity, same
from .record_files import read_below
from .run import Run

KIND = "peak_flops"
_DATASHEETS = Path(__file__).parents[2] / "datasheets.csv"


@dataclass(frozen=True)
class PeakFlops:
    """The result of one peak-FLOPS benchmark.

    ``tflops``: 10^12 floating-point operations per second of matmuls on the slowest of ``devices``
    busy devices of a node; None if the benchmark failed. ``by``: origin of the peak: framework,
    version, dtype, rows, and, unless the record is older, duration and busy devices."""

    framework: str
    hardware: str
    accelerator: str
    cores: int | None
    precision: str
    tflops: float | None
    by: str
    machine: Identity = UNKNOWN
    devices: int = 1


class PeakFlopsLookup:
    """Peak FLOPS of devices, looked up for a run."""

    def __init__(self, peaks: Iterable[PeakFlops] = ()) -> None:
        self._found: dict[tuple[Any, ...], list[PeakFlops]] = defaultdict(list)
        for peak in peaks:
            if peak.tflops:
                key = (peak.hardware, peak.accelerator, peak.cores, peak.precision)
                self._found[key].append(peak)

    def for_run(self, run: Run, framework: str = "") -> PeakFlops | None:
        """Return the highest peak on the run's machine, accelerator, cores and precision.

        ``framework``: the one whose matmuls count; "" for any.

        The peak was measured with the run's number of busy devices per node, else with the next
        smaller number, whose peak is no lower. None without such a peak."""
        if run.case.source != OURS or not run.hardware:
            return None
        where = run.conditions
        key = (run.hardware, where.accelerator, where.cores_per_device, run.case.precision)
        here = [
            peak
            for peak in self._found.get(key, [])
            if same(peak.machine, run.machine) and peak.devices <= run.case.devices_per_node
            if framework in ("", peak.framework)
        ]
        return max(here, key=lambda peak: (peak.devices, peak.tflops or 0.0), default=None)


def load(folder: Path) -> tuple[list[PeakFlops], list[Problem]]:
    """Return the peaks below ``folder``, and the files that cannot be read."""
    return read_below(folder, KIND, _peak)


def _peak(record: Mapping[str, Any]) -> PeakFlops:
    """Read a peak from a record."""
    case, settings, ranks = record["case"], record["settings"], record["ranks"]
    machine = identity(record["environment"])
    first: Mapping[str, Any] = ranks[0] if ranks else {}
    by = [case["framework"], record["framework_version"], *[*first.get("matmul_dtypes", ())][:1]]
    by += [str(_fastest(first)["size"])]
    by += [f"for {sum(first['sustained']['seconds']):.1f} s"] if "sustained" in first else []
    by += [f"on {case['devices_per_node']} devices at once"] if case["devices_per_node"] > 1 else []
    return PeakFlops(
        framework=case["framework"],
        hardware=machine.hardware,
        accelerator=settings["accelerator"],
        cores=conditions_from_settings(settings).cores_per_device,
        precision=case["precision"],
        tflops=record["metrics"]["peak"]["value"] if record["status"] == "ok" else None,
        by=" ".join(by),
        machine=machine,
        devices=case["devices_per_node"],
    )


def _fastest(rank: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sustained matmuls of a rank; in older records the fastest of its short blocks."""
    blocks = [rank["sustained"]] if "sustained" in rank else rank.get("matmuls", ())

    def rate(block: Mapping[str, Any]) -> float:
        seconds = min(block["seconds"], default=0.0) or math.inf
        return float(block["size"] ** 3 * block["count"] / seconds)

    return max(blocks, key=rate, default={"size": 0})


def gpu_tflops(name: str, precision: str) -> float | None:
    """Return the TFLOP/s of the GPU of this name by its data sheets, without sparsity; None unless
    exactly one value is known. bfloat16 and float16 are equally fast."""
    kind = precision.partition("_")[0]
    kind = "amp" if kind in ("bf16", "fp16") else kind
    stated = {
        float(number)
        for pattern, known, number, _ in _datasheets()
        if known == kind and fnmatchcase(name, pattern)
    }
    return stated.pop() if len(stated) == 1 else None


@cache
def _datasheets() -> list[list[str]]:
    """Return the rows of the table: pattern of a device's name, precision, TFLOP/s and source."""
    _, *rows = csv.reader(bounded.read_text(_DATASHEETS).splitlines())
    return rows
