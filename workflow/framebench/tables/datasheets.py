"""Peak FLOPS of devices from vendors' data sheets."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from core import bounded

from ..records.run import Run

DATASHEETS = Path(__file__).parents[2] / "datasheets.csv"


class Datasheet(NamedTuple):
    """Peak of a device by its data sheet, without sparsity, in 10^12 operations per second.

    ``device``: pattern for device names, where ``*`` matches anything."""

    device: str
    precision: str
    tflops: float
    source: str


def load_datasheets(path: Path = DATASHEETS) -> list[Datasheet]:
    """Return the data sheets in a CSV file.

    Raises OSError for an unreadable file, ValueError for other columns or invalid numbers."""
    header, *rows = csv.reader(bounded.read_text(path).splitlines())
    if tuple(header) != Datasheet._fields:
        raise ValueError(f"{path.name}: columns are {header}; allowed: {Datasheet._fields}")
    return [Datasheet(device, precision, float(n), source) for device, precision, n, source in rows]


def datasheet_tflops(datasheets: Sequence[Datasheet], run: Run) -> float | None:
    """Return the data-sheet TFLOP/s of a run's device.

    None for CPUs, for instances of MIG, and unless exactly one value matches the machine's GPUs."""
    if run.conditions.accelerator == "cpu":
        return None
    names = run.hardware.split(", ")
    precision = run.case.precision.partition("_")[0]
    if precision in ("amp", "bf16", "fp16"):
        precision = "amp"  # bfloat16 and float16 are equally fast
    stated = {
        sheet.tflops
        for sheet in datasheets
        if sheet.precision == precision
        if any(fnmatchcase(name, sheet.device) and " MIG " not in name for name in names)
    }
    return stated.pop() if len(stated) == 1 else None
