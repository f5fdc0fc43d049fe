"""Data frames of cases: a row per case, with a column per axis, condition and figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import pandas as pd

from ..cases.conditions import COUNTS, KEYS, path_of
from .columns import COLUMNS, Row
from .results import CaseResult, flags_of, highest

#: Figures of a case that tables share.
_FIGURES: Mapping[str, Callable[[CaseResult], Any]] = {
    "matmul_dtypes": attrgetter("matmul_dtypes"),
    "uncompiled": attrgetter("uncompiled"),
    "status": attrgetter("status"),
    "reason": attrgetter("reason"),
    "flags": flags_of,
    "remarks": lambda case: "; ".join(case.remarks),
    "repeats": lambda case: len(case.values) or len(case.runs),
    "unit": attrgetter("unit"),
    "throughput_median": attrgetter("throughput"),
    "peak_device_memory_bytes": highest("peak_device_memory"),
    "peak_host_memory_bytes": highest("peak_host_memory"),
    "devices": attrgetter("case.devices"),
}


def case_frame(results: Iterable[CaseResult]) -> pd.DataFrame:
    """Return a row per case, with a column per axis, condition and shared figure."""
    listed = list(results)
    keys = {name: list(map(attrgetter(path_of(name)), listed)) for name in KEYS}
    # An import lacks a count that is 0.
    keys |= {name: [value or None for value in keys[name]] for name in COUNTS}
    values = keys | {name: list(map(value, listed)) for name, value in _FIGURES.items()}
    return pd.DataFrame(
        {name: pd.Series(some, dtype=COLUMNS[name].type) for name, some in values.items()}
    )


def with_cells(cases: pd.DataFrame, cells: Iterable[Row | None]) -> pd.DataFrame:
    """Return ``cases`` with further columns. ``cells``: their values by name; None for no row."""
    made = list(cells)
    kept = [row is not None for row in made]
    rows = [row for row in made if row is not None]
    chosen = cases.loc[kept]
    return chosen.assign(**pd.DataFrame(rows, index=chosen.index, dtype=object))
