"""Data of the page's tables for its script, which filters, sorts and unfolds rows.

Cells are texts. A column is an index into ``lists``, because many tables share cases. Each list has
its shortest form: ``{"same": value}``, ``{"of": [values], "at": [index of each]}``, or the list
itself.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from ..cases.conditions import KEYS
from ..records.run import Run
from ..tables import measured
from ..tables.columns import Row
from ..tables.formatting import Cell
from ..tables.frames import FLAGS, Field
from ..tables.results import CaseResults
from ..tables.table import AXES, Table
from .page_tables import PageTable
from .selection import axis_of


def page_data(tables: Sequence[PageTable], links: RowLinks) -> Markup:
    """Return the data as JSON for a script element."""
    lists = _Lists()
    made = [_table(table, links, lists) for table in tables]
    data = {
        "axes": AXES,
        "flags": FLAGS,
        "tables": made,
        "cases": links.data(lists),
        "lists": lists.written,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Escape "<", so that no text ends the element or begins a comment.
    return Markup(text.replace("<", "\\u003c"))


class _Lists:
    """Store of distinct lists. ``written``: lists in their shortest form."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.written: list[Any] = []

    def number(self, values: Iterable[Any]) -> int:
        """Return the index under which the page stores a list of texts, numbers and None."""
        key = tuple(values)
        if key not in self._numbers:
            self._numbers[key] = len(self.written)
            self.written.append(_written(key))
        return self._numbers[key]


def _written(values: Sequence[Any]) -> Any:
    distinct = dict.fromkeys(values)
    if len(distinct) == 1:
        return {"same": values[0]}
    if len(distinct) * 2 < len(values):
        places = {value: index for index, value in enumerate(distinct)}
        return {"of": list(distinct), "at": [places[value] for value in values]}
    return list(values)


def _table(page_table: PageTable, links: RowLinks, lists: _Lists) -> dict[str, Any]:
    view, table = page_table.view, page_table.view.table
    rows = view.rows
    made: dict[str, Any] = {
        "name": table.name,
        "title": table.title,
        "rows": len(rows),
        "shown": [
            {
                **_column(field),
                "title": field.column.header,
                "kind": field.kind,
                "answer": is_answer,
                "cells": lists.number(map(_text, field.cells)),
            }
            for field, is_answer in page_table.shown
        ],
        "unfolded": [
            {"title": field.column.header, "cells": lists.number(map(_text, field.cells))}
            for field in page_table.unfolded
        ],
        "axes": {
            axis: lists.number(axis_of(row, axis) for row in rows)
            for axis in table.axes
            if rows and axis_of(rows[0], axis) is not None
        },
        "ids": lists.number(page_table.ids),
    }
    has_records = table.runs is not None or {*KEYS, "flags"} <= {*table.names}
    if has_records and not table.crosstab:
        made["behind"] = _references(page_table, links, lists)
    if table.order:
        name = table.order.removeprefix("-")
        # Numbers are sorted in descending, texts in ascending order; "-" reverses this.
        is_number = any(isinstance(row.get(name), (int, float)) for row in rows)
        made["order"] = {"name": name, "down": is_number != table.order.startswith("-")}
    if table.crosstab:
        made["across"] = "framework"
    return made


def _column(field: Field) -> Mapping[str, Any]:
    """Return a column's name, its meaning, and the CSS classes of its texts."""
    looks = {cell.text: cell.kind for cell in field.cells if cell.kind.startswith("status")}
    about = {"name": field.column.name, "meaning": field.column.explanation, "looks": looks}
    return {name: value for name, value in about.items() if value}


def _text(cell: Cell) -> str:
    """Return a cell's text and, after a tab, its flags or why it is missing."""
    small = cell.why or cell.flags
    return f"{cell.text}\t{small}" if small else cell.text


def _references(page_table: PageTable, links: RowLinks, lists: _Lists) -> list[dict[str, Any]]:
    """Return labels and indices of the 1st, 2nd, .. group of runs behind each row; -1 for none."""
    view = page_table.view
    behind = [links.runs(view.table, row) for row in view.rows]
    references = []
    for index in range(max(map(len, behind), default=0)):
        some = [runs[index] if index < len(runs) else None for runs in behind]
        references.append(
            {
                "labels": lists.number(runs[0] if runs else "" for runs in some),
                "cases": lists.number(links.place(runs[1]) if runs else -1 for runs in some),
            }
        )
    return references


# ---- records behind rows -------------------------------------------------------------------------


class RowLinks:
    """Groups of runs that rows come from, each stored once with links to records and a command.

    ``root``: folder of the records; ``folder``: folder that links are relative to."""

    def __init__(self, cases: CaseResults, root: Path = Path(), folder: Path = Path()) -> None:
        self._runs: dict[tuple[Any, ...], list[Run]] = defaultdict(list)
        for key, result in cases.items():  # some tables have no column for the unit
            if key == result.runs[0].key:  # once per case, not once per metric
                self._runs[_cells_of(key.row)] += result.runs
        self._root, self._folder = root, folder
        self._groups: dict[tuple[int, ...], tuple[int, Sequence[Run]]] = {}

    def runs(self, table: Table, row: Row) -> list[tuple[str, Sequence[Run]]]:
        """Return the labelled runs behind a row."""
        if table.runs:
            return [("", table.runs(row))]
        results: list[tuple[str, Sequence[Run]]] = []
        for label, fields in table.behind(row):
            runs = self._runs.get(_cells_of({**row, **fields}), ())
            if same := [run for run in runs if _is_of(run, row)]:
                results.append((label, same))
        return results

    def place(self, runs: Sequence[Run]) -> int:
        """Return the index of a group of runs."""
        return self._groups.setdefault(tuple(map(id, runs)), (len(self._groups), runs))[0]

    def data(self, lists: _Lists) -> dict[str, Any]:
        return {
            "count": len(self._groups),
            # Text and address of each link, alternating.
            "records": lists.number(
                "\t".join(part for run in runs for part in self._link(run))
                for _, runs in self._groups.values()
            ),
            "commands": lists.number(runs[0].command for _, runs in self._groups.values()),
        }

    def _link(self, run: Run) -> tuple[str, str]:
        """Return text and address of a link to the run's record, or to the CSV file with it."""
        target = run.record or self._root / run.origin.rpartition(":")[0]
        path = os.fsencode(os.path.relpath(target, self._folder))
        text = run.origin if run.record is None else str(run.repeat)
        return text, quote(path.replace(os.fsencode(os.sep), b"/"))


def _cells_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def _is_of(run: Run, row: Row) -> bool:
    """Return whether a run has the row's unit and parameters, if the table has these columns."""
    parameters = measured.parameters_text(run.case)
    unit = row.get("unit", run.unit)
    return (unit, row.get("parameters", parameters)) == (run.unit, parameters)
