"""Published tables, and how they compare with the runs they were made from.

A folder of published data holds `published.csv` (one row per printed cell) and, if the source
prints them, `runs.csv` (the runs, see `tidy_csv`) and `causes.csv` (why a cell does not follow from
its runs).
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from core import bounded
from core.text import printable

from ...cases.conditions import CASE
from ...records.run import RecordsError
from ...tables.columns import Row as Values
from ...tables.declared.speedups import WEAK
from ...tables.results import CaseResults
from ...tables.table import Inputs, frame_rows, tables_in

PUBLISHED_NAME = "published.csv"
#: A median of an even number of repeats may end in a 5 exactly at a half unit; binary floats must
#: not decide on which side of it.
ROUNDING = 1e-9
#: Regular expression of a printed figure, with its decimals.
_FIGURE = re.compile(r"-?\d{1,15}(?:\.(\d{1,15}))?")
#: Columns that identify the case of a printed figure. Published tables mention other conditions
#: only in words.
KEYS = (*CASE, "input_pipeline", "variant")
CELL = ("table", "place", "column", "quantity")


(_TABLE,) = tables_in(Path(__file__).with_name("tables.yaml")).values()
PUBLISHED_COLUMNS = _TABLE.names[: _TABLE.names.index("recomputed")]
CAUSE_COLUMNS = (*CELL, "cause")
CAUSES_NAME = "causes.csv"
UNEXPLAINED = "unexplained"
# Quantities that follow from runs, and their columns in the table of all cases.
FROM_RUNS = {"throughput": "throughput_median", "speedup": "speedup"}

Row = Mapping[str, str]


def _ranked(rows: Sequence[Values]) -> Iterator[Values]:
    """Yield differing rows first, then agreeing ones, then those without runs."""
    order = {False: 0, True: 1, None: 2}
    for row in sorted(rows, key=lambda row: order[row["agrees"]]):
        yield {column.name: row[column.name] for column in _SHOWN}


def _counted(rows: Sequence[Values]) -> Iterator[str]:
    agrees = Counter(row["agrees"] for row in rows)
    yield (
        f"{len(rows)} printed cells; {agrees[True] + agrees[False]} with runs, of which "
        f"{agrees[True]} agree and {agrees[False]} differ; {agrees[None]} without runs."
    )
    reasons = Counter(row["note"] for row in rows if row["agrees"] is None)
    if reasons:
        yield "Without runs: " + "; ".join(f"{count}: {why}" for why, count in reasons.items())


#: Columns that identify a cell, and its result.
_SHOWN = tuple(
    column
    for column in _TABLE.columns
    if column.name
    in {"place", "column", "framework", "nodes", "devices_per_node", "quantity", "printed",
        "recomputed", "agrees", "note"}
)  # fmt: skip
TABLE = replace(_TABLE, overview=lambda rows: (_SHOWN, [*_ranked(rows)]), lead=_counted)


def half_unit(printed: str) -> float | None:
    """Return half a unit of the last printed digit: 0.005 for "28.89", 0.05 for "10.2".

    None for text that is not a figure, such as a dash.
    """
    match = _FIGURE.fullmatch(printed)
    return float(f"5e-{len(match[1] or '') + 1}") if match else None


def _key_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the KEYS of a case with known runs; ``row``: its case and conditions by column."""
    known = {**row, "input_pipeline": row["input"], "variant": row["source_variant"]}
    return tuple(str(known[name]) for name in KEYS)


def compare_published(cases: CaseResults, published_csv: Path) -> pd.DataFrame:
    """Compare every published cell with the runs of its case, in the order printed.

    `recomputed` is not rounded; `half_unit` is half a unit of the last printed digit; `agrees` is
    True, False, or missing if there is nothing to compare. `note` is the cause of a difference from
    causes.csv ("unexplained" without one), or why there is nothing to compare. Raises RecordsError
    for files with other columns.
    """
    cells = read_cells(published_csv)
    causes = read_causes(published_csv.parent)
    known = {_key_of(row): row for row in frame_rows(Inputs(cases).frame_of(WEAK))}
    rows = [_compared(cell, known, causes) for cell in cells]
    return TABLE.frame(rows)


def read_cells(published_csv: Path) -> list[dict[str, str]]:
    """Return every printed cell, in the order printed. Raises RecordsError for other columns."""
    return _read(published_csv, PUBLISHED_COLUMNS)


def read_causes(folder: Path) -> dict[tuple[str, ...], str]:
    """Return the causes of cells that do not follow from their runs, by CELL; empty without the
    file."""
    path = folder / CAUSES_NAME
    listed = _read(path, CAUSE_COLUMNS) if path.is_file() else []
    return {tuple(row[name] for name in CELL): row["cause"] for row in listed}


def _read(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        table = pd.read_csv(io.StringIO(bounded.read_text(path)), dtype=str, keep_default_na=False)
    except (OSError, ValueError) as error:
        raise RecordsError(f"{path}: cannot be read as CSV: {error}") from error
    if list(table.columns) != list(columns):
        raise RecordsError(
            f"{path}: found columns {','.join(map(str, table.columns))}; "
            f"allowed: {','.join(columns)}"
        )
    listed = table.to_dict("records")
    return [{name: printable(str(row[name])) for name in columns} for row in listed]


def _compared(
    cell: Row,
    cases: Mapping[tuple[str, ...], Mapping[Any, Any]],
    causes: Mapping[tuple[str, ...], str],
) -> Mapping[str, Any]:
    half = half_unit(cell["printed"])

    def row(note: str, value: float | None = None, agrees: bool | None = None) -> dict[str, Any]:
        found = {"recomputed": value, "half_unit": half, "agrees": agrees, "note": note}
        return {**cell, **found}

    if half is None:
        return row(f"no figure is printed, but {cell['printed']!r}")
    if cell["quantity"] not in FROM_RUNS:
        return row(f"runs do not have a {cell['quantity']}")
    case = cases.get(tuple(cell[key] for key in KEYS))
    if case is None:
        return row("no runs of this case")
    value = case[FROM_RUNS[cell["quantity"]]]
    if pd.isna(value):
        return row(str(case["reason"]))
    printed = float(cell["printed"])
    agrees = abs(value - printed) <= half + ROUNDING * abs(printed)
    cause = causes.get(tuple(cell[name] for name in CELL), UNEXPLAINED)
    return row("" if agrees else cause, value, agrees)
