"""Peak FLOPS of a device in a precision, as measured by the peak-FLOPS benchmark.

The peak belongs to the device, not to a framework: the fastest matmul of any framework on the same
machine, accelerator and cores, with the same number of busy devices, is the bound for all.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.conditions import OURS, of_settings
from ..machine.identities import UNKNOWN, Identity, identity, same
from .record_files import hardware_label, read_below
from .run import Problem, Run

KIND = "peak_flops"
#: Tolerance between stated and computed peak: one program writes both from the same floats.
_RELATIVE_ERROR = 1e-6


@dataclass(frozen=True)
class PeakFlops:
    """The result of one peak-FLOPS benchmark.

    ``tflops``: 10^12 floating-point operations per second of matmuls in ``dtype`` with ``size``
    rows, on the slowest of ``devices`` busy devices of a node; None unless ``status`` is ok.
    ``sustained_seconds``: how long the rate held; None in older records. ``library``: the library
    that multiplied and the code that it chose, as it says itself; "" if unknown."""

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
    sustained_seconds: float | None = None
    devices: int = 1
    library: str = ""

    @property
    def by(self) -> str:
        """Describe the origin of the peak: framework, version, dtype, rows, duration, busy
        devices."""
        held = f" for {self.sustained_seconds:.1f} s" if self.sustained_seconds else ""
        together = f" on {self.devices} devices at once" if self.devices > 1 else ""
        return f"{self.framework} {self.framework_version} {self.dtype} {self.size}{held}{together}"


def tflops_of(block: Mapping[str, Any]) -> float:
    """Return TFLOP/s of matmuls of n rows: n^3 multiplications and as many additions each."""
    return float(2e-12 * block["size"] ** 3 * block["count"] / min(block["seconds"]))


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

        It is of as many busy devices as the run had on a node, else of the next smaller number that
        was measured, whose peak is no lower. None if there is none."""
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
    """Read a peak from a record. Raises ValueError for an ok record without a timed matmul."""
    tflops, size, dtype = None, 0, ""
    if record["status"] == "ok":
        tflops, size, dtype = _reached(record["case"], record["ranks"])
        stated = record["metrics"].get("peak", {}).get("value")
        if stated is None or not math.isclose(stated, tflops, rel_tol=_RELATIVE_ERROR):
            raise ValueError(f"states a peak of {stated} TFLOP/s, but its matmuls reached {tflops}")
    settings = record["settings"]
    hardware = hardware_label(record["environment"]["hardware"])
    library = next((rank["library"] for rank in record["ranks"] if "library" in rank), "")
    if settings["accelerator"] == "cuda":
        packages = record["environment"]["packages"].items()
        cublas = [number for name, number in packages if name.startswith("nvidia-cublas")]
        stated = [rank.get("settings", {}).get("kernels") for rank in record["ranks"][:1]]
        known = [f"cuBLAS {number}" for number in cublas[:1]]
        library = "; ".join([*known, *(f"own kernels: {text}" for text in stated if text)])
    return PeakFlops(
        framework=record["case"]["framework"],
        framework_version=record["framework_version"],
        hardware=hardware,
        accelerator=settings["accelerator"],
        cores=of_settings(settings).cores_per_device,
        precision=record["case"]["precision"],
        status=record["status"],
        reason=record["reason"],
        tflops=tflops,
        dtype=dtype,
        size=size,
        machine=identity(record["environment"], hardware),
        sustained_seconds=_sustained_seconds(record["ranks"]),
        devices=record["case"]["devices_per_node"],
        library=library,
    )


def _sustained_seconds(ranks: Sequence[Mapping[str, Any]]) -> float | None:
    return next((sum(rank["sustained"]["seconds"]) for rank in ranks if "sustained" in rank), None)


def _reached(case: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]]) -> tuple[float, int, str]:
    """Return the rate of the slowest rank in TFLOP/s, its matrix size, and its dtype."""
    devices = case["devices_per_node"]
    if case["nodes"] != 1 or len(ranks) != devices:
        raise ValueError(
            f"is an ok peak-FLOPS benchmark of {len(ranks)} ranks on {devices} device(s) of a node"
        )
    return min(map(_reached_by, ranks))


def _reached_by(rank: Mapping[str, Any]) -> tuple[float, int, str]:
    """Return the sustained rate of a rank; in older records the highest rate of a short block."""
    sustained = rank.get("sustained")
    blocks = [sustained] if sustained else rank.get("matmuls", ())
    if not blocks or not all(block["seconds"] and min(block["seconds"]) for block in blocks):
        raise ValueError("is an ok peak-FLOPS benchmark without timed matmuls")
    dtypes = list(rank.get("matmul_dtypes", ()))
    if len(dtypes) != 1:
        raise ValueError(
            f"is an ok peak-FLOPS benchmark with matmuls in {dtypes}; allowed: one dtype"
        )
    tflops, size = max((tflops_of(block), int(block["size"])) for block in blocks)
    return tflops, size, str(dtypes[0])
