"""What vendors say of their devices, beside what was measured."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ..files import bounded
from ..records.run import Run

DATASHEETS = Path(__file__).parents[2] / "datasheets.csv"


class Datasheet(NamedTuple):
    """What a vendor says that a device does, without sparsity, in 10^12 operations per second.
    ``device`` is a pattern for its name, with ``*`` for anything."""

    device: str
    precision: str
    tflops: float
    source: str


def load_datasheets(path: Path = DATASHEETS) -> list[Datasheet]:
    """Raises OSError or ValueError for a file that cannot be read as such a table."""
    header, *rows = csv.reader(bounded.read_text(path).splitlines())
    if tuple(header) != Datasheet._fields:
        raise ValueError(f"{path.name}: columns are {header}; allowed: {Datasheet._fields}")
    return [Datasheet(device, precision, float(n), source) for device, precision, n, source in rows]


def datasheet_tflops(datasheets: Sequence[Datasheet], run: Run) -> float | None:
    """Of the device that the run was on. None for processors, and where none or several of the
    machine's kinds of GPU are known."""
    if run.conditions.accelerator == "cpu":
        return None
    names = run.hardware.split(", ")
    stated = {
        sheet.tflops
        for sheet in datasheets
        if sheet.precision == run.case.precision
        if any(fnmatchcase(name, sheet.device) for name in names)
    }
    return stated.pop() if len(stated) == 1 else None
