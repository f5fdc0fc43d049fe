"""Tables of the page: what people see of a frame, and links to the records behind each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from ..tables import view
from ..tables.table import Table
from ..tables.view import View
from .record_links import Links, RecordLinks

MAX_ROWS = 600


@dataclass(frozen=True)
class PageTable:
    """``links``: of each row shown, None for a table that is not of cases."""

    view: View
    links: Sequence[RecordLinks] | None


def of_frame(table: Table, frame: pd.DataFrame, links: Links | None = None) -> PageTable:
    """At most MAX_ROWS of it."""
    seen = view.of(table, frame, most=MAX_ROWS)
    if links is None or not table.has_records:
        return PageTable(seen, None)
    return PageTable(seen, [links.behind(table, row) for row in seen.rows])


@dataclass(frozen=True)
class Section:
    """Tables of the page under one heading. ``compares`` frameworks."""

    anchor: str
    heading: str
    tables: Sequence[PageTable]
    compares: bool
    absent: str

    @property
    def has_crosstabs(self) -> bool:
        return any(one.view.crosstabs for one in self.tables)


def sections(tables: Sequence[PageTable]) -> list[Section]:
    """Of tables that have a row, in their order, and of those that say why they have none."""
    grouped: dict[str, list[PageTable]] = {}
    for one in tables:
        if _is_shown(one):
            grouped.setdefault(one.view.table.anchor, []).append(one)
    return [
        Section(
            anchor,
            some[0].view.table.heading or some[0].view.table.title,
            [one for one in some if one.view.rows],
            any(one.view.table.has_records for one in some),
            some[0].view.table.absent,
        )
        for anchor, some in grouped.items()
    ]


def _is_shown(one: PageTable) -> bool:
    table, rows = one.view.table, one.view.rows
    if table.needs:
        return any(row[table.needs] is not None for row in rows)
    return bool(rows or table.absent)
