"""Tables of the page: arrangement, links to the records of each row, and row anchors."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..tables import arrangement, view
from ..tables.arrangement import Arrangement, Shown
from ..tables.columns import NUMBER, TEXT, Column
from ..tables.formatting import DASH, Cell
from ..tables.table import Crosstab, Table
from ..tables.view import Field, TableView
from .record_links import RecordLinks, RowLinks

#: Most rows of a table without a script.
MAX_ROWS = 60


@dataclass(frozen=True)
class PageTable:
    """A table of the page.

    ``links``: record links by number of each row shown without a script; None if rows have no
    records. ``ids``: anchor of each row, the same for every set of records."""

    arrangement: Arrangement
    links: Mapping[int, RecordLinks] | None
    ids: Sequence[str]

    @property
    def view(self) -> TableView:
        return self.arrangement.view

    @property
    def written(self) -> Sequence[int]:
        """Numbers of the rows that are shown without a script."""
        return self.arrangement.order[:MAX_ROWS]

    @property
    def left_out(self) -> str:
        there, shown = len(self.view.rows), len(self.written)
        if there == shown:
            return ""
        name = self.arrangement.table.name
        return f"Left out: {there - shown} of {there} rows; all are in tables/{name}.csv."


def of_frame(table: Table, frame: pd.DataFrame, links: RowLinks | None = None) -> PageTable:
    """Return a table as the page shows it."""
    seen = view.view_table(table, frame)
    arranged = _crossed(seen) if seen.crosstabs else arrangement.arrange(seen)
    rows = arranged.view.rows
    keys = table.overview.keys if table.overview else table.keys
    ids = _ids([[row.get(name) for name in keys] for row in rows])
    if links is None or not table.has_records or seen.crosstabs:
        return PageTable(arranged, None, ids)
    written = arranged.order[:MAX_ROWS]
    return PageTable(arranged, {at: links.links_of(table, rows[at]) for at in written}, ids)


def _ids(keys: Sequence[Sequence[Any]]) -> list[str]:
    """Return a short id per key; a number is appended to repeated ids."""
    names = [_digest(key) for key in keys]
    met: Counter[str] = Counter()
    results = []
    for name in names:
        met[name] += 1
        results.append(name if met[name] == 1 else f"{name}-{met[name]}")
    return results


def _digest(values: Iterable[Any]) -> str:
    """Return the first 8 digits of a SHA-256 hash of the values."""
    text = json.dumps(list(map(str, values)))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


# ---- a table with frameworks across -------------------------------------------------------------


def _crossed(seen: TableView) -> Arrangement:
    """Return crosstabs as one table: settings down, frameworks across.

    Frameworks with the fewest figures are unfolded if the page lacks room."""
    names = list(dict.fromkeys(name for crosstab in seen.of_page for name in crosstab.rows))
    places = [(crosstab, setting) for crosstab in seen.of_page for setting in crosstab.settings]
    fields = [
        Field(
            Column(name, NUMBER, "", title=name, figure=True),
            "number",
            [_cell(crosstab, name, setting) for crosstab, setting in places],
        )
        for name in names
    ]
    by_figures = sorted(fields, key=lambda field: sum(cell.is_missing for cell in field.cells))
    room = arrangement.MOST - 2
    kept = [field for field in fields if field in by_figures[:room]]
    texts = {
        "measured": [crosstab.title for crosstab, _ in places],
        "setting": [setting for _, setting in places],
    }
    keys = [
        Field(Column(title, TEXT, "", title=title), "", [Cell(text, "case") for text in some])
        for title, some in texts.items()
    ]
    rest = [field for field in fields if field not in kept]
    settings = [crosstab.settings[setting] for crosstab, setting in places]
    whole = replace(seen, rows=settings, fields=[*keys, *fields])
    shown = [Shown([field], is_answer=False) for field in keys]
    shown += [Shown([field], is_answer=True) for field in kept]
    return Arrangement(whole, shown, rest, range(len(settings)))


def _cell(crosstab: Crosstab, name: str, setting: str) -> Cell:
    """Return the cell of a framework at a setting; "not run" if there is none."""
    cell = crosstab.rows.get(name, {}).get(setting)
    return Cell(DASH, "number missing", "", "not run") if cell is None else _in_words(cell)


def _in_words(cell: Cell) -> Cell:
    """Return a missing figure's cell as a dash with its status.

    The reason is listed under Failures."""
    if "missing" not in cell.kind.split():
        return cell
    return cell._replace(text=DASH, kind="number missing", why=cell.text)


# ---- sections -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """Tables of the page under one heading.

    ``compares``: rows have records, so that frameworks are compared."""

    anchor: str
    heading: str
    tables: Sequence[PageTable]
    compares: bool
    absent: str

    @property
    def has_crosstabs(self) -> bool:
        return any(table.view.table.crosstabs for table in self.tables)


def sections(tables: Sequence[PageTable]) -> list[Section]:
    """Return sections of the tables that have rows or explain their absence, in order."""
    grouped: dict[str, list[PageTable]] = {}
    for table in tables:
        if _is_shown(table):
            grouped.setdefault(table.view.table.anchor, []).append(table)
    return [
        Section(
            anchor,
            some[0].view.table.heading or some[0].view.table.title,
            [page_table for page_table in some if page_table.view.rows],
            any(page_table.view.table.has_records for page_table in some),
            some[0].view.table.absent,
        )
        for anchor, some in grouped.items()
    ]


def _is_shown(page_table: PageTable) -> bool:
    table, rows = page_table.view.table, page_table.view.rows
    if table.needs:
        return any(row[table.needs] is not None for row in rows)
    return bool(rows or table.absent)
