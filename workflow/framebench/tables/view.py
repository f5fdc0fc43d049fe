"""Formatted tables for Markdown and the page: visible columns, cells, shared values.

At most MOST columns are visible on the page. All follows from the declaration of the table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from ..cases.conditions import CONDITIONS, KEYS
from . import formatting
from .columns import NUMBER, PRINTED, TEXT, TOPOLOGY, Column, Row
from .formatting import REASONS, Cell
from .table import Crosstab, Table

#: Most columns that fit on the page.
MOST = 9
#: Text of a missing figure whose reason is among the unfolded columns.
UNFOLDED = "unfold for why"
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

    @property
    def title(self) -> str:
        return self.column.header


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
    rows = records(frame)
    lead = list(table.lead(rows)) if table.lead else []
    if table.overview:
        columns = table.overview.columns
        rows = list(table.overview.rows(rows))
    shown = [column for column in columns if _is_shown(column, rows)]
    shared = {column.name: text for column in shown if (text := _shared(table, column, rows))}
    caption = [(column.header, shared[column.name]) for column in shown if column.name in shared]
    if table.crosstab and rows:
        across = table.crosstab(rows)
        fields, rows = _fields_across(across), [row for *_, row in across.settings]
    else:
        fields = [_field(column, rows) for column in shown if column.name not in shared]
    return TableView(table, fields, caption, lead, rows)


def _fields_across(across: Crosstab) -> list[Field]:
    """Return the fields of a crosstab: what was measured, the setting, and its columns."""
    texts = {"measured": [name for name, *_ in across.settings],
             "setting": [setting for _, setting, _ in across.settings]}  # fmt: skip
    keys = {title: [Cell(text, "case") for text in some] for title, some in texts.items()}
    return [
        *(Field(Column(title, TEXT, ""), "", cells) for title, cells in keys.items()),
        *(Field(Column(name, NUMBER, "", title=name), "number", cells)
          for name, cells in across.columns.items()),
    ]  # fmt: skip


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


# ---- which columns ------------------------------------------------------------------------------


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


# ---- the page -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Arrangement:
    """Columns of the page, from left to right, and those that unfold below a row.

    ``shown``: each with whether it is an answer."""

    shown: Sequence[tuple[Field, bool]]
    unfolded: Sequence[Field]


def arrange(view: TableView) -> Arrangement:
    """Return the arrangement of a table. Surplus keys are unfolded; in a crosstab, the columns with
    the fewest figures."""
    by_name = {field.column.name: field for field in view.fields}
    if view.table.crosstab:
        keys, columns = [*by_name][:2], [*by_name][2:]
        missing = {name: sum(cell.is_missing for cell in by_name[name].cells) for name in columns}
        kept = sorted(columns, key=lambda name: missing[name])[: MOST - 2]
        order = [*keys, *(name for name in columns if name in kept)]
    else:
        kept = [name for name in view.table.answering if name in by_name]
        keys = [
            name for name, field in by_name.items() if name not in kept and _is_key(view, field)
        ]
        order = [*kept, *keys][:MOST]
    shown = [
        (_with_status(by_name[name], view), True) if name in kept else (by_name[name], False)
        for name in order
    ]
    return Arrangement(shown, [field for name, field in by_name.items() if name not in order])


def _with_status(field: Field, view: TableView) -> Field:
    """Return a figure's field whose missing cells have a status or refer to the reason."""
    if field.kind != "number":
        return field
    cells = [
        cell._replace(why=_why(row)) if cell.is_missing and not cell.why else cell
        for cell, row in zip(field.cells, view.rows, strict=True)
    ]
    return replace(field, cells=cells)


def _why(row: Row) -> str:
    status = str(row.get("status") or "ok")
    if status != "ok":
        return status
    return UNFOLDED if any(row.get(name) for name in REASONS) else ""


def _is_key(view: TableView, field: Field) -> bool:
    name = field.column.name
    if name in _OF_FRAMEWORK:
        pairs = {(row.get("framework"), row[name]) for row in view.rows}
        if len(pairs) == len({framework for framework, _ in pairs}):
            return False  # the framework implies it
    is_key = name in view.table.keys and name not in _NOT_OF_THE_CASE
    return is_key or name in ("total_batch", *CONDITIONS)
