"""Arrangement of a table on the page: visible columns, unfolded columns, order of rows.

At most MOST columns are visible. The arrangement follows from the declaration of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..cases.conditions import CONDITIONS
from .columns import Row
from .formatting import Cell
from .table import Table
from .view import Field, TableView

#: Most columns that fit on the page.
MOST = 9
#: Columns with the reason for a missing figure, and the text that refers to them when unfolded.
_REASONS = ("reason", "note")
UNFOLDED = "unfold for why"
#: Key columns that describe the figure, not the case.
_NOT_OF_THE_CASE = {"unit", "status"}


@dataclass(frozen=True)
class Shown:
    """A column of the page: one field, or several joined if there are too many keys."""

    fields: Sequence[Field]
    is_answer: bool

    @property
    def title(self) -> str:
        return ", ".join(field.title for field in self.fields)

    @property
    def kind(self) -> str:
        return self.fields[0].kind if len(self.fields) == 1 else ""

    def cell(self, row: int) -> Cell:
        """Return the cell in row number ``row``."""
        cells = [field.cells[row] for field in self.fields]
        if len(cells) == 1:
            return cells[0]
        return Cell(", ".join(cell.text for cell in cells if cell.text))


@dataclass(frozen=True)
class Arrangement:
    """Visible and unfolded columns of a table, and the order of its rows.

    ``shown``: answers, then keys. ``unfolded``: all other fields. ``order``: row numbers as
    initially shown."""

    view: TableView
    shown: Sequence[Shown]
    unfolded: Sequence[Field]
    order: Sequence[int]

    @property
    def falls(self) -> bool:
        """Return whether rows are sorted in descending order."""
        return _falls(self.view)

    @property
    def table(self) -> Table:
        return self.view.table


def arrange(view: TableView) -> Arrangement:
    """Return the arrangement of a table.

    Raises KeyError if the declared order names no column."""
    by_name = {field.column.name: field for field in view.fields}
    answers = [
        _with_status(by_name[name], view) for name in view.table.answering if name in by_name
    ]
    names = {field.column.name for field in answers}
    others = [field for field in view.fields if field.column.name not in names]
    keys = [field for field in others if _is_key(view, field)]
    room = MOST - len(answers)
    if len(keys) > room:
        keys, rest = keys[: room - 1], keys[room - 1 :]
    else:
        rest = []
    names |= {field.column.name for field in (*keys, *rest)}
    return Arrangement(
        view,
        [
            *(Shown([field], is_answer=True) for field in answers),
            *(Shown([field], is_answer=False) for field in keys),
            *([Shown(rest, is_answer=False)] if rest else []),
        ],
        [field for field in others if field.column.name not in names],
        ordered(view),
    )


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
    return UNFOLDED if any(row.get(name) for name in _REASONS) else ""


def _is_key(view: TableView, field: Field) -> bool:
    keys = view.table.overview.keys if view.table.overview else view.table.keys
    name = field.column.name
    # The column of devices also shows the number of nodes.
    return (name in keys and name not in _NOT_OF_THE_CASE) or name in ("total_batch", *CONDITIONS)


def _falls(view: TableView) -> bool:
    """Return whether the sort is descending: for numbers, or for text with "-" declared."""
    name = view.table.order.removeprefix("-")
    is_number = any(isinstance(row.get(name), (int, float)) for row in view.rows)
    return is_number != view.table.order.startswith("-")


def ordered(view: TableView) -> list[int]:
    """Return row numbers in sorted order; rows without a sort value come last."""
    name = view.table.order.removeprefix("-")
    values = [row[name] for row in view.rows] if name else []
    there = [at for at, value in enumerate(values) if value is not None]
    there.sort(key=lambda at: values[at], reverse=_falls(view))
    return [*there, *(at for at in range(len(view.rows)) if not name or values[at] is None)]
