"""Formatted tables for Markdown and HTML: visible columns, headers, cells, shared values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import pandas as pd

from ..cases.conditions import CASE, CONDITIONS
from . import formatting
from .columns import PRINTED, Column, Row
from .formatting import Cell, plain
from .results import flags_of_all, other_flags
from .table import Crosstab, Table

#: Columns of the case that stay in rows if there is room.
STAYING = {*CASE, "total_batch", "unit", "status"} - {"source"}


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

    ``fields``: in display order, notes last. ``shared``: title and value pairs that hold for every
    row, including flags of all figures. ``rows``: values of the rows."""

    table: Table
    fields: Sequence[Field]
    shared: Sequence[tuple[str, str]]
    lead: Sequence[str]
    rows: Sequence[Row]

    @cached_property
    def columns(self) -> list[tuple[str, str]]:
        """Title and kind of each field."""
        return [(field.title, field.kind) for field in self.fields]

    @cached_property
    def cells(self) -> list[dict[str, Cell]]:
        """Cells of each row by column name."""
        return [
            {field.column.name: field.cells[at] for field in self.fields}
            for at in range(len(self.rows))
        ]

    @property
    def notes(self) -> int:
        """Number of columns that are notes."""
        return sum(field.column.note for field in self.fields)

    @cached_property
    def crosstabs(self) -> Sequence[Crosstab]:
        """Crosstabs in place of the rows, if the table has them."""
        return self.table.crosstabs(self.rows) if self.table.crosstabs else ()

    @cached_property
    def of_page(self) -> Sequence[Crosstab]:
        """Crosstabs on the page in place of the rows."""
        return self.table.of_page(self.rows) if self.table.of_page else self.crosstabs

    @property
    def about(self) -> list[str]:
        """Explanations of columns, without duplicates."""
        return list(
            dict.fromkeys(field.column.about for field in self.fields if field.column.about)
        )


def view_table(table: Table, frame: pd.DataFrame, narrow: bool = True) -> TableView:
    """Return the formatted table.

    ``narrow``: move all shared values to the caption; otherwise only source and conditions move,
    and the case stays in its row."""
    columns: Sequence[Column] = table.columns
    rows = records(frame)
    lead = list(table.lead(rows)) if table.lead else []
    if table.overview:
        columns = table.overview.columns
        rows = list(table.overview.rows(rows))
    shared, dropped = _shared(columns, rows, narrow)
    if everywhere := _marks_of_all(columns, rows):
        shared.append(("every figure has the flag", " ".join(everywhere)))
        rows = [{**row, "flags": other_flags(plain(row["flags"]), everywhere)} for row in rows]
    visible = [
        column
        for column in columns
        if column.name not in dropped | _absorbed(columns) and not _is_blank(column, rows)
    ]
    ordered = sorted(visible, key=lambda column: column.note)
    notes = [column.name for column in columns if column.note]
    fields = [_field(column, rows, notes) for column in ordered]
    return TableView(table, fields, shared, lead, rows)


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
    missing = series.isna()
    if not missing.any():
        return values
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


# ---- which columns ------------------------------------------------------------------------------


def _absorbed(columns: Sequence[Column]) -> set[str]:
    """Return the names of columns that are hidden or shown within others."""
    hidden = (column.name for column in columns if column.hidden)
    inside = ((column.to, column.share, column.detail) for column in columns)
    return {*hidden, *chain.from_iterable(inside)}


def _shared(
    columns: Sequence[Column], rows: Sequence[Row], narrow: bool
) -> tuple[list[tuple[str, str]], set[str]]:
    """Return values shared by all rows, and the columns that this makes unnecessary."""
    shared: list[tuple[str, str]] = []
    dropped: set[str] = set()
    names = {column.name for column in columns}
    for column in columns if rows else ():
        if column.listed:
            lists = formatting.common_parameters(rows, column.name)
            shared += [(f"{column.header} of {mode}", text) for mode, text in lists.items() if text]
            if not any(map(formatting.own_parameters(rows, column.name), rows)):
                dropped.add(column.name)
            continue
        is_condition = column.name in CONDITIONS
        moves = column.hoisted and (narrow or column.name not in STAYING)
        if not is_condition and (len(rows) < 2 or not moves):
            continue
        text = partial(formatting.cell_text, column)
        # Equal values have equal texts: most columns have few.
        distinct = {(row[column.name], row.get(column.detail)): row for row in rows}
        values = set(map(text, distinct.values()))
        if len(values) == 1:
            (value,) = values
            if is_condition or value:
                dropped.add(column.name)
                shared += [(column.header, value)] * bool(value)
        elif narrow and len(rows) > 1 and column.follows in names:
            pairs = {(str(row[column.follows]), text(row)): None for row in rows}
            if len(pairs) == len({name for name, _ in pairs}):
                named = ", ".join(f"{name} {value}" for name, value in pairs if value)
                shared.append((f"{column.header} of each {column.follows}", named))
                dropped.add(column.name)
    return shared, dropped


def _marks_of_all(columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    marked = [column.name for column in columns if column.flagged]
    figures = (row for row in rows if any(row[name] is not None for name in marked))
    return flags_of_all(plain(row.get("flags")) for row in figures)


def _is_blank(column: Column, rows: Sequence[Row]) -> bool:
    """Return whether a column is left out because it has no value.

    Number columns without values are kept unless optional, because their cells give the reason."""
    if column.is_number:
        return column.optional and all(row[column.name] is None for row in rows)
    return not any(row[column.name] not in (None, "") for row in rows)


def _field(column: Column, rows: Sequence[Row], notes: Sequence[str]) -> Field:
    kind = "number" if column.is_number or column.form is PRINTED else ""
    cells = list(formatting.cells(column, rows, notes))
    return Field(column, "note" if column.note else kind, cells)
