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
#: Relative tolerance for medians that lie exactly half a unit from the printed figure, so that
#: binary rounding does not decide whether they agree.
ROUNDING = 1e-9
#: Regular expression of a printed figure, with its decimals.
_FIGURE = re.compile(r"-?\d{1,15}(?:\.(\d{1,15}))?")
#: Columns that identify the case of a printed figure. Published tables mention other conditions
#: only in words.
KEYS = (*CASE, "input_pipeline", "variant")
CELL = ("table", "place", "column", "quantity")

(_TABLE,) = tables_in(Path(__file__).with_name("tables.yaml")).values()
PUBLISHED_COLUMNS = _TABLE.names[: _TABLE.names.index("recomputed")]
UNEXPLAINED = "unexplained"
# Quantities that can be recomputed from runs, and their columns in the table of weak scaling.
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


#: Columns on the page: those that identify a printed cell, and the result of its comparison.
_SHOWN = tuple(
    column
    for column in _TABLE.columns
    if column.name
    in {"place", "column", "framework", "nodes", "devices_per_node", "quantity", "printed",
        "recomputed", "agrees", "note"}
)  # fmt: skip
TABLE = replace(_TABLE, overview=lambda rows: (_SHOWN, [*_ranked(rows)]), lead=_counted)


def half_unit(printed: str) -> float | None:
    """Return half a unit of the last printed digit: 0.005 for "28.89", 0.05 for "10.2"; None for
    text that is not a figure, such as a dash."""
    match = _FIGURE.fullmatch(printed)
    return float(f"5e-{len(match[1] or '') + 1}") if match else None


def compare_published(cases: CaseResults, published_csv: Path) -> pd.DataFrame:
    """Compare every published cell with the runs of its case, in the order printed.

    `recomputed` is not rounded; `half_unit` is half a unit of the last printed digit; `agrees` is
    True, False, or missing if there is nothing to compare. `note` is the cause of a difference from
    causes.csv ("unexplained" without one), or why there is nothing to compare. Raises RecordsError
    for files with other columns.
    """
    path = published_csv.with_name("causes.csv")
    listed = _read(path, (*CELL, "cause")) if path.is_file() else []
    causes = {tuple(row[name] for name in CELL): row["cause"] for row in listed}
    known = {}
    for row in frame_rows(Inputs(cases).frame_of(WEAK)):
        case = {**row, "input_pipeline": row["input"], "variant": row["source_variant"]}
        known[tuple(str(case[name]) for name in KEYS)] = row
    return TABLE.frame(_compared(cell, known, causes) for cell in read_cells(published_csv))


def read_cells(published_csv: Path) -> list[dict[str, str]]:
    """Return every printed cell, in the order printed. Raises RecordsError for other columns."""
    return _read(published_csv, PUBLISHED_COLUMNS)


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
    cell: Row, cases: Mapping[tuple[str, ...], Values], causes: Mapping[tuple[str, ...], str]
) -> Values:
    half, quantity = half_unit(cell["printed"]), cell["quantity"]
    case = cases.get(tuple(cell[key] for key in KEYS), {})
    value, agrees, note = case.get(FROM_RUNS.get(quantity, "")), None, ""
    if half is None:
        note = f"no figure is printed, but {cell['printed']!r}"
    elif quantity not in FROM_RUNS:
        note = f"runs do not have a {quantity}"
    elif not case:
        note = "no runs of this case"
    elif pd.isna(value):
        note = str(case["reason"])
    else:
        printed = float(cell["printed"])
        agrees = abs(value - printed) <= half + ROUNDING * abs(printed)
        if not agrees:
            note = causes.get(tuple(cell[name] for name in CELL), UNEXPLAINED)
    recomputed = None if agrees is None else value
    return {**cell, "recomputed": recomputed, "half_unit": half, "agrees": agrees, "note": note}
