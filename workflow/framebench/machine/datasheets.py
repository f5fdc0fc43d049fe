"""Peaks of GPUs by their data sheets, without sparsity."""

from __future__ import annotations

import csv
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from core import bounded

_TABLE = Path(__file__).parents[2] / "datasheets.csv"


def tflops(name: str, precision: str) -> float | None:
    """Return the TFLOP/s of the GPU of this name; None unless exactly one value is known.
    bfloat16 and float16 are equally fast."""
    kind = precision.partition("_")[0]
    kind = "amp" if kind in ("bf16", "fp16") else kind
    stated = {
        float(number)
        for pattern, known, number, _ in _rows()
        if known == kind and fnmatchcase(name, pattern)
    }
    return stated.pop() if len(stated) == 1 else None


@cache
def _rows() -> list[list[str]]:
    """Return the rows of the table: pattern of a device's name, precision, TFLOP/s and source."""
    _, *rows = csv.reader(bounded.read_text(_TABLE).splitlines())
    return rows
