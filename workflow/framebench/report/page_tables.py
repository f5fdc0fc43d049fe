"""Tables of the page, with an anchor for each row, and the folded parts that hold them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ..cases.conditions import CONDITIONS
from ..config.statuses import FAILURES
from ..tables import formatting, frames
from ..tables.columns import Row
from ..tables.frames import Field, TableView
from ..tables.table import Table
from .plots import Plot

#: Column of tables of ratios.
RATIO = "speedup"
#: Most columns that fit on the page.
MOST = 9
#: Key columns that describe the figure, not the case.
_NOT_OF_THE_CASE = {"unit", "status"}
#: Key columns that are unfolded where each framework has only one value.
_OF_FRAMEWORK = ("framework_version", "source")


@dataclass(frozen=True)
class PageTable:
    """A table of the page, whose rows its script draws.

    ``shown``: columns from left to right, each with whether it is an answer. ``unfolded``: columns
    that unfold below a row. ``ids``: anchor of each row, the same for every set of records.
    ``without_ratio``: number of rows that are only in the file, because they have no ratio."""

    view: TableView
    shown: Sequence[tuple[Field, bool]]
    unfolded: Sequence[Field]
    ids: Sequence[str]
    without_ratio: int


def page_table(table: Table, frame: pd.DataFrame) -> PageTable:
    """Return a table as the page shows it; a table of ratios has only rows with a ratio."""
    with_ratio = frame[frame[RATIO].notna()] if RATIO in frame else frame
    seen = frames.view_table(table, with_ratio)
    ids = [*_row_ids(table, seen.rows)]
    return PageTable(seen, *_arrange(seen), ids, len(frame) - len(with_ratio))


def _row_ids(table: Table, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a short hash of each row's keys, with a number where it repeats."""
    met: Counter[str] = Counter()
    for row in rows:
        text = json.dumps([str(row.get(name)) for name in table.keys])
        name = hashlib.sha256(text.encode()).hexdigest()[:8]
        met[name] += 1
        yield name if met[name] == 1 else f"{name}-{met[name]}"


def _arrange(view: TableView) -> tuple[list[tuple[Field, bool]], list[Field]]:
    """Return the shown and the unfolded columns; surplus keys and columns of a crosstab unfold."""
    by_name = {field.column.name: field for field in view.fields}
    if view.table.crosstab:
        kept = [name for name, field in by_name.items() if field.kind == "number"]
        order = [*by_name][:MOST]
    else:
        kept = [name for name in view.table.answering if name in by_name]
        keys = [
            name for name, field in by_name.items() if name not in kept and _is_key(view, field)
        ]
        order = [*kept, *keys][:MOST]
    shown = [(by_name[name], name in kept) for name in order]
    return shown, [field for name, field in by_name.items() if name not in order]


def _is_key(view: TableView, field: Field) -> bool:
    name = field.column.name
    if name in _OF_FRAMEWORK:
        pairs = {(row.get("framework"), row[name]) for row in view.rows}
        if len(pairs) == len({framework for framework, _ in pairs}):
            return False  # the framework implies this value
    is_key = name in view.table.keys and name not in _NOT_OF_THE_CASE
    return is_key or name in ("total_batch", *CONDITIONS)


# ---- folded parts --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """A folded part. ``name``: heading with its content in words."""

    anchor: str
    name: str
    tables: Sequence[tuple[PageTable, Sequence[Plot]]]


def parts_of(tables: Sequence[PageTable], plots: Mapping[str, Sequence[Plot]]) -> list[Part]:
    """Return the folded parts of tables with rows, crosstabs first."""
    grouped: dict[str, list[PageTable]] = {}
    for page_table in tables:
        if page_table.view.rows:
            grouped.setdefault(page_table.view.table.anchor, []).append(page_table)
    made = [
        Part(
            anchor,
            _name(some[0].view.table, some),
            [(page_table, plots.get(page_table.view.table.name, ())) for page_table in some],
        )
        for anchor, some in grouped.items()
    ]
    return sorted(made, key=lambda part: not part.tables[0][0].view.table.crosstab)


def _name(table: Table, tables: Sequence[PageTable]) -> str:
    """Return the heading of a part, which states its content."""
    rows = [row for page_table in tables for row in page_table.view.rows]
    heading = table.heading or table.title
    say = _CONTENTS.get(table.name)
    if say:
        return f"{heading}: {say(rows)}"
    ratios = [row[RATIO] for row in rows if row.get(RATIO) is not None]
    if ratios:
        return f"{heading}: {min(ratios):.2f} to {max(ratios):.2f} times"
    return f"{heading}: {formatting.counted(len(rows), 'row')}"


def _verified(rows: Sequence[Row]) -> str:
    """Return how many verifications passed: ``all 46 passed``."""
    counts = Counter(str(row["verdict"]) for row in rows)
    if {*counts} == {"passed"}:
        return f"all {len(rows)} passed"
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())


def _failed(rows: Sequence[Row]) -> str:
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row["status"]] += row["failed_runs"]
    return ", ".join(f"{count} {FAILURES[status].words}" for status, count in counts.items())


#: Contents in words, by table.
_CONTENTS: Mapping[str, Callable[[Sequence[Row]], str]] = {
    **dict.fromkeys(("overview", "fastest"), lambda rows: formatting.counted(len(rows), "setting")),
    "verification": _verified,
    "failures": _failed,
}
