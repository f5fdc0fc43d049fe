"""What a case makes of its device: operations per second against a peak, energy, memory.

Model FLOPs: the multiply-adds of the model's forward pass, two operations each, three times that
for a training step, whose backward pass has two products for each of the forward pass. What a
framework computes again, or besides products, does not count (PaLM, Chowdhery et al. 2022,
appendix B: model FLOPs utilization).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ..cases.conditions import KEYS
from ..config.catalog import forward_multiply_adds
from ..records.peaks import Peaks
from ..records.run import Run
from ..statistics import descriptive
from .cases import CaseResult, CaseResults, marks_of
from .columns import frame

DATASHEETS = Path(__file__).parents[2] / "datasheets.csv"
COLUMNS = (
    *KEYS,
    "throughput_median",
    "unit",
    "tflops_per_device",
    "peak_tflops",
    "peak_by",
    "datasheet_tflops",
    "mfu",
    "energy_joules_per_sample",
    "peak_device_memory_bytes",
    "peak_host_memory_bytes",
    "marks",
    "reason",
)
#: What a machine may have nothing to say of.
OPTIONAL = ("datasheet_tflops", "energy_joules_per_sample", "peak_device_memory_bytes")


class Datasheet(NamedTuple):
    """What a vendor says that a device does, without sparsity, in 10^12 operations per second.
    ``device`` is a pattern for its name, with ``*`` for anything."""

    device: str
    precision: str
    tflops: float
    source: str


def load_datasheets(path: Path = DATASHEETS) -> list[Datasheet]:
    """Raises OSError or ValueError for a file that cannot be read as such a table."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    if tuple(header) != Datasheet._fields:
        raise ValueError(f"{path.name}: columns are {header}; allowed: {Datasheet._fields}")
    return [Datasheet(device, precision, float(n), source) for device, precision, n, source in rows]


def datasheet_tflops(datasheets: Sequence[Datasheet], run: Run) -> float | None:
    """Of the device that the run was on. None for processors, and where none or several of the
    machine's kinds of GPU are known."""
    if run.conditions.accelerator == "cpu":
        return None
    names = run.hardware.split(", ")
    found = {
        sheet.tflops
        for sheet in datasheets
        if sheet.precision == run.case.precision
        if any(fnmatchcase(name, sheet.device) for name in names)
    }
    return found.pop() if len(found) == 1 else None


def operations_per_sample(run: Run, models: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Model FLOPs of one sample in the run's mode; None where the model is not known, or how long
    its sequences were. ``models``: facts by name."""
    facts = models.get(run.case.model)
    if facts is None:
        return None
    length = run.conditions.sequence_length
    if facts["sequence_lengths"] and length is None:
        return None
    passes = 3 if run.case.mode == "train" else 1
    return 2.0 * passes * forward_multiply_adds(dict(facts), length)


def table(
    cases: CaseResults,
    peaks: Peaks,
    models: Mapping[str, Mapping[str, Any]],
    datasheets: Sequence[Datasheet],
) -> pd.DataFrame:
    """A row for every case.

    1. tflops_per_device: median throughput x model FLOPs of a sample / devices.
    2. mfu: that / the highest peak that any framework reached in products on such a device.
    3. Energy: the median over repeats of joules / samples, over all devices; memory: the most that
       any rank of any repeat took.
    """
    rows = [_row(result, peaks, models, datasheets) for result in cases.values()]
    return frame(COLUMNS, rows)


def _row(
    result: CaseResult,
    peaks: Peaks,
    models: Mapping[str, Mapping[str, Any]],
    datasheets: Sequence[Datasheet],
) -> list[Any]:
    run = result.runs[0]  # all are of one model, precision and kind of device
    operations = operations_per_sample(run, models)
    peak = peaks.of(run)
    achieved = None
    if result.throughput is not None and operations is not None:
        achieved = result.throughput * operations / run.case.devices / 1e12
    energies = [r.joules_per_sample for r in result.ok if r.joules_per_sample is not None]
    return [
        *result.key.cells,
        result.throughput,
        result.unit,
        achieved,
        peak and peak.tflops,
        peak.by if peak else "",
        datasheet_tflops(datasheets, run),
        achieved / peak.tflops if achieved is not None and peak and peak.tflops else None,
        descriptive.median(energies) if energies else None,
        max((r.peak_device_memory for r in result.ok if r.peak_device_memory), default=None),
        max((r.peak_host_memory for r in result.ok if r.peak_host_memory), default=None),
        marks_of(result),
        _reason(result, operations is not None, peak is not None),
    ]


def _reason(result: CaseResult, operations_known: bool, peak_known: bool) -> str:
    """Why there is no utilisation; empty where there is one."""
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    if not operations_known:
        return "the operations of this model, or of this sequence length, are not known"
    if not peak_known:
        return f"no probe of such a device in {result.case.precision}"
    return ""
