"""Peaks of GPUs by their data sheets, without sparsity."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

from core import bounded

_TABLE = Path(__file__).parents[2] / "datasheets.csv"


class Datasheet(NamedTuple):
    """Peak of a device, in 10^12 operations per second.

    ``device``: pattern for device names, where ``*`` matches anything."""

    device: str
    precision: str
    tflops: float
    source: str


def tflops(name: str, precision: str) -> float | None:
    """Return the TFLOP/s of the GPU of this name; None unless exactly one value is known.
    bfloat16 and float16 are equally fast."""
    kind = precision.partition("_")[0]
    kind = "amp" if kind in ("bf16", "fp16") else kind
    stated = {
        sheet.tflops
        for sheet in _datasheets()
        if sheet.precision == kind and fnmatchcase(name, sheet.device)
    }
    return stated.pop() if len(stated) == 1 else None


@cache
def _datasheets() -> Sequence[Datasheet]:
    _, *rows = csv.reader(bounded.read_text(_TABLE).splitlines())
    return [Datasheet(device, precision, float(n), source) for device, precision, n, source in rows]
