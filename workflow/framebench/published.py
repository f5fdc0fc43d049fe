"""Published tables checked against the runs they were made from.

A folder of published data holds `runs.csv` (the runs, see `tidy_csv`), `published.csv` (one row
per printed cell) and `causes.csv` (why a cell does not follow from its runs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import pandas as pd

from .cases import KEYS
from .run import RecordsError, Run
from .tables import build

CELL = ("table", "place", "column", "quantity")
PUBLISHED_COLUMNS = ("table", "place", "column", *KEYS, "quantity", "printed", "unit")
CAUSE_COLUMNS = (*CELL, "cause")
CAUSES_NAME = "causes.csv"
COMPARED_COLUMNS = (*PUBLISHED_COLUMNS, "recomputed", "half_unit", "agrees", "note")
UNEXPLAINED = "unexplained"
QUANTITIES = {"throughput": "throughput_median", "speedup": "speedup"}

# What a run must share with a figure besides its place, and how a note calls it.
_NAMES = {
    "framework_version": "version",
    "source": "source",
    "precision": "precision",
    "compiler": "compiler",
    "variant": "variant",
    "batch_per_device": "batch",
}
# A median of an even number of repeats ends in a 5 just where a half unit ends; binary floats
# must not decide on which side of it.
_ROUNDING = 1e-9

Row = Mapping[str, str]


def compare_published(runs: Sequence[Run], published_csv: Path) -> pd.DataFrame:
    """Every published cell against what its runs give: COMPARED_COLUMNS, in the order printed.

    `recomputed` is not rounded; `half_unit` is half a unit of the last printed digit; `agrees` is
    True, False, or missing where there is nothing to compare. `note` is the cause of a difference
    from causes.csv beside ("unexplained" without one), or why there is nothing to compare.
    Raises RecordsError for files with other columns or quantities.
    """
    cells = _read(published_csv, PUBLISHED_COLUMNS)
    beside = published_csv.parent / CAUSES_NAME
    listed = _read(beside, CAUSE_COLUMNS) if beside.is_file() else []
    causes = {tuple(row[name] for name in CELL): row["cause"] for row in listed}
    scaling = build(runs)["weak_scaling"].to_dict("records")
    cases = {tuple(str(row[key]) for key in KEYS): row for row in scaling}
    rows = [_compared(cell, cases, causes) for cell in cells]
    table = pd.DataFrame(rows, columns=list(COMPARED_COLUMNS), dtype=object)
    types = {"recomputed": "float64", "half_unit": "float64", "agrees": "boolean"}
    return table.astype({name: types.get(name, "str") for name in COMPARED_COLUMNS})


def half_unit(printed: str) -> float | None:
    """Half a unit of the last printed digit: 0.005 for "28.89", 0.05 for "10.2".

    None for what is no number, such as a dash.
    """
    try:
        exponent = Decimal(printed).as_tuple().exponent
    except InvalidOperation:
        return None
    return float(Decimal(5).scaleb(exponent - 1)) if isinstance(exponent, int) else None


def _read(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise RecordsError(f"{path}: cannot be read as CSV: {error}") from error
    if list(table.columns) != list(columns):
        raise RecordsError(
            f"{path}: found columns {','.join(map(str, table.columns))}; "
            f"allowed: {','.join(columns)}"
        )
    return [{name: str(row[name]) for name in columns} for row in table.to_dict("records")]


def _compared(
    cell: Row,
    cases: Mapping[tuple[str, ...], Mapping[Any, Any]],
    causes: Mapping[tuple[str, ...], str],
) -> list[Any]:
    if cell["quantity"] not in QUANTITIES:
        raise RecordsError(
            f"{cell['place']}: found quantity {cell['quantity']!r}; "
            f"allowed: {', '.join(QUANTITIES)}"
        )
    given = [cell[name] for name in PUBLISHED_COLUMNS]
    half = half_unit(cell["printed"])
    if half is None:
        return [*given, None, None, None, f"no figure is printed, but {cell['printed']!r}"]
    case = cases.get(tuple(cell[key] for key in KEYS))
    if case is None:
        return [*given, None, half, None, _nearest(cell, cases)]
    value = case[QUANTITIES[cell["quantity"]]]
    if pd.isna(value):
        return [*given, None, half, None, case["reason"]]
    printed = float(cell["printed"])
    agrees = abs(value - printed) <= half + _ROUNDING * abs(printed)
    cause = causes.get(tuple(cell[name] for name in CELL), UNEXPLAINED)
    return [*given, value, half, agrees, "" if agrees else cause]


def _nearest(cell: Row, cases: Iterable[tuple[str, ...]]) -> str:
    """Why a figure has no runs: how the runs nearest to it differ from it."""
    known = [dict(zip(KEYS, key, strict=True)) for key in cases]
    for keys in (("framework",), ("framework", "model"), ("framework", "model", "mode")):
        known = [run for run in known if all(run[key] == cell[key] for key in keys)]
        if not known:
            return f"no runs of {', '.join(cell[key] for key in keys)}"

    def differences(run: Row) -> list[str]:
        return [key for key in _NAMES if run[key] != cell[key]]

    # The keys of the run break ties, so that the order of the runs does not matter.
    nearest = min(known, key=lambda run: (len(differences(run)), *run.values()))
    other = differences(nearest)
    if not other:
        return f"no runs at {cell['nodes']}n{cell['devices_per_node']}g"
    return f"runs are of {_told(nearest, other)}; this figure is of {_told(cell, other)}"


def _told(row: Row, keys: Sequence[str]) -> str:
    return ", ".join(f"{_NAMES[key]} {row[key] or '(none)'}" for key in keys)
