"""Formatted tables for Markdown and the page: visible columns, cells, shared values.

At most MOST columns are visible on the page. All follows from the declaration of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..cases.conditions import CONDITIONS, KEYS
from . import formatting
from .columns import PRINTED, TOPOLOGY, Column, Row
from .formatting import Cell
from .table import Table

#: Most columns that fit on the page.
MOST = 9
#: Key columns that describe the figure, not the case.
_NOT_OF_THE_CASE = {"unit", "status"}
#: Key columns that are unfolded where each framework has only one value.
_OF_FRAMEWORK = ("framework_version", "source")


@dataclass(frozen=True)
class Field:
    """A formatted column. ``kind``: ``number`` for right-aligned cells sorted by value."""

    column: Column
    kind: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class TableView:
    """A formatted table.

    ``fields``: in the order of the columns. ``shared``: title and value pairs that hold for every
    row. ``rows``: values of the rows."""

    table: Table
    fields: Sequence[Field]
    shared: Sequence[tuple[str, str]]
    lead: Sequence[str]
    rows: Sequence[Row]


def view_table(table: Table, frame: pd.DataFrame) -> TableView:
    """Return the formatted table. Values of the case that all rows share move to the caption."""
    columns: Sequence[Column] = table.columns
    rows: Sequence[Row] = records(frame)
    lead = list(table.lead(rows)) if table.lead else []
    if table.overview and rows:
        columns, rows = table.overview(rows)
    shown = [column for column in columns if _is_shown(column, rows)]
    shared = {
        column.name: text
        for column in shown
        if not table.crosstab and (text := _shared(table, column, rows))
    }
    caption = [(column.header, shared[column.name]) for column in shown if column.name in shared]
    fields = [_field(column, rows) for column in shown if column.name not in shared]
    return TableView(table, fields, caption, lead, rows)


def records(frame: pd.DataFrame) -> list[Row]:
    """Return the rows of a frame with Python's own types, and None for any missing value."""
    columns = {str(name): _values(values) for name, values in frame.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def rows_of(tables: Mapping[Table, pd.DataFrame], table: Table) -> list[Row]:
    """Return the rows of a table; [] if it is not among ``tables``."""
    return records(tables[table]) if table in tables else []


def _values(series: pd.Series[Any]) -> list[Any]:
    values: list[Any] = series.tolist()
    if series.dtype == "float64":
        return [value if math.isfinite(value) else None for value in values]
    return [None if gone else value for value, gone in zip(values, series.isna(), strict=True)]


# ---- which columns -------------------------------------------------------------------------------


def _is_shown(column: Column, rows: Sequence[Row]) -> bool:
    """Return whether readers see a column: numbers, whose cells say why a figure is missing, and
    texts unless all are blank."""
    if column.hidden:
        return False
    values = {row[column.name] for row in rows}
    if column.is_number:
        return not column.optional or values != {None}
    return any(formatting.cell_text(column, value) for value in values)


def _shared(table: Table, column: Column, rows: Sequence[Row]) -> str:
    """Return the text that all rows have in a column of texts or of the case; "" if they differ,
    and for a single row unless it is a condition."""
    is_of_case = column.name in KEYS and column.form is not TOPOLOGY
    is_text = not column.is_number and column.form is not PRINTED
    if column.name in table.answering or not (is_of_case or is_text):
        return ""
    if len(rows) < 2 and column.name not in CONDITIONS:
        return ""
    texts = {formatting.cell_text(column, value) for value in {row[column.name] for row in rows}}
    return texts.pop() if len(texts) == 1 else ""


def _field(column: Column, rows: Sequence[Row]) -> Field:
    cells = formatting.cells(column, rows)
    is_note = any(cell.kind == "note long" for cell in cells)
    is_number = column.is_number or column.form is PRINTED
    return Field(column, "number" if is_number else "note" * is_note, cells)


# ---- the page ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrangement:
    """Columns of the page, from left to right, and those that unfold below a row.

    ``shown``: pairs of a column and whether it is an answer."""

    shown: Sequence[tuple[Field, bool]]
    unfolded: Sequence[Field]


def arrange(view: TableView) -> Arrangement:
    """Return the arrangement of a table. Surplus keys and columns of a crosstab are unfolded."""
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
    return Arrangement(shown, [field for name, field in by_name.items() if name not in order])


def _is_key(view: TableView, field: Field) -> bool:
    name = field.column.name
    if name in _OF_FRAMEWORK:
        pairs = {(row.get("framework"), row[name]) for row in view.rows}
        if len(pairs) == len({framework for framework, _ in pairs}):
            return False  # the framework implies this value
    is_key = name in view.table.keys and name not in _NOT_OF_THE_CASE
    return is_key or name in ("total_batch", *CONDITIONS)
