"""The rows of the page as data: what its script filters, sorts, unfolds, draws and relates to a
baseline. Cells are the texts that :mod:`tables.view` has made; numbers stand beside them only where
ratios are made of them.

A list of values is written as short as it can be: ``{"same": value}``, ``{"of": [values], "at":
[place of each]}``, or as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..cases.names import topology
from ..records.calls import Call
from ..records.run import Run
from ..tables.cells import Cell
from ..tables.columns import Row
from ..tables.declared import overview
from ..tables.results import UNCOMPILED
from ..tables.view import Field
from . import again
from .html_tables import PageTable
from .record_links import Links

#: Digits of a number that ratios are made of: more than any cell shows.
DIGITS = 7
#: What a framework has its own way: no part of what a case and its baseline have in common.
_OF_FRAMEWORK = ("framework_version", "source", "environment", "marks")
#: Columns that the axes stand for.
_OF_AXES = ("framework", "model", "mode", "precision", "compiler", "nodes", "devices_per_node")


def of(
    tables: Sequence[PageTable], links: Links, calls: Sequence[Call], series: Mapping[str, int]
) -> Markup:
    """As JSON that can stand in a script element. ``series``: the number of the colour of each
    framework."""
    cases = _Cases(links, calls)
    made = [_table(one, links, cases) for one in tables]
    data = {"tables": made, "cases": cases.data(), "series": series}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Nothing in it ends the element, or begins a comment.
    return Markup(text.replace("<", "\\u003c"))


def listed(values: Iterable[Any]) -> Any:
    """As short as it can be; see above."""
    every = list(values)
    keys = [json.dumps(value) if isinstance(value, list) else value for value in every]
    distinct = dict(zip(keys, every, strict=True))
    if len(distinct) == 1:
        return {"same": every[0]}
    if len(distinct) * 2 < len(every):
        places = {key: place for place, key in enumerate(distinct)}
        return {"of": list(distinct.values()), "at": [places[key] for key in keys]}
    return every


class _Cases:
    """The runs behind rows, each group once: where their records are, how the case is called, the
    command that measures it again, and the figures of its repeats."""

    def __init__(self, links: Links, calls: Sequence[Call]) -> None:
        self._links, self._calls = links, again.timed(calls)
        self._places: dict[tuple[int, ...], int] = {}
        self._groups: list[Sequence[Run]] = []

    def place(self, runs: Sequence[Run]) -> int:
        key = tuple(map(id, runs))
        if key not in self._places:
            self._places[key] = len(self._groups)
            self._groups.append(runs)
        return self._places[key]

    def data(self) -> dict[str, Any]:
        words = [again.case_of(runs[0]).split() for runs in self._groups]
        longest = max(map(len, words), default=0)
        hrefs = [[(one.text, one.href) for one in self._links.to(runs)] for runs in self._groups]
        folders = [os.path.commonprefix([href for _, href in some]) for some in hrefs]
        commands = [self._command(runs[0]) for runs in self._groups]
        return {
            # By place, because a word of one case is that of many.
            "words": [
                listed(some[at] if at < len(some) else "" for some in words)
                for at in range(longest)
            ],
            "folders": listed(folders),
            "records": listed(
                [[text, href.removeprefix(folder)] for text, href in some]
                for some, folder in zip(hrefs, folders, strict=True)
            ),
            "commands": listed(commands),
            "repeats": [
                [short(run.figure) for run in runs if run.figure is not None]
                for runs in self._groups
            ],
        }

    def _command(self, run: Run) -> str:
        """Without the case; "" where the call that measured it is not known."""
        call = again.call_of(run, self._calls)
        try:
            return again.command(call) if call else ""
        except ValueError:
            return ""


def _table(one: PageTable, links: Links, cases: _Cases) -> dict[str, Any]:
    view, table = one.arrangement.view, one.arrangement.table
    rows = view.rows
    found: dict[str, Any] = {
        "name": table.name,
        "title": table.title,
        "units": listed(str(row.get("unit") or "") for row in rows),
        "rows": len(rows),
        "shown": [
            {
                **_column(shown.fields[0] if len(shown.fields) == 1 else None, rows),
                "title": shown.title,
                "kind": shown.kind,
                "answer": shown.is_answer,
                "cells": listed(_text(shown.cell(at)) for at in range(len(rows))),
            }
            for shown in one.arrangement.shown
        ],
        "unfolded": [
            {"title": field.title, "cells": listed(map(_text, field.cells))}
            for field in one.arrangement.unfolded
        ],
        "axes": {axis: listed(axis_of(row, axis) for row in rows) for axis in axes_of(one)},
    }
    if any("raw" in column for column in found["shown"]):
        names = [name for name in table.keys if rows and name in rows[0]]
        rest = [name for name in names if name not in (*_OF_AXES, *_OF_FRAMEWORK)]
        texts = ([str(row[name]) for name in rest] for row in rows)
        found["rest"] = listed("\t".join(some) for some in texts)
        found["ways"] = listed(map(_way, rows))
    if one.links is not None:
        found["behind"] = _references(one, links, cases)
    if table.order:
        found["order"] = {
            "name": table.order.removeprefix("-"),
            "down": one.arrangement.falls,
        }
    if table.crosstabs:
        found["across"] = "framework"
    found["ids"] = listed(one.ids)
    return found


def _column(field: Field | None, rows: Sequence[Row]) -> dict[str, Any]:
    """What a script must know of a column besides its texts."""
    if field is None:
        return {}
    found: dict[str, Any] = {"name": field.column.name}
    looks = {cell.text: cell.kind for cell in field.cells if cell.kind.startswith("status")}
    if looks:
        found["looks"] = looks
    if field.column.figure:
        found["raw"] = [_raw(cell) for cell in field.cells]
    return found


def _raw(cell: Cell) -> float | None:
    if cell.is_missing:
        return None
    return short(float(cell.sort or cell.text))


def short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _text(cell: Cell) -> str:
    """The text and, behind a tab, what stands small beside it: its marks, or why it is missing."""
    small = cell.why or cell.marks
    return f"{cell.text}\t{small}" if small else cell.text


def _references(one: PageTable, links: Links, cases: _Cases) -> list[dict[str, Any]]:
    """By place: what the runs behind a row are called there, and which they are; -1 for none."""
    table = one.arrangement.table
    behind = [links.runs(table, row) for row in one.arrangement.view.rows]
    found = []
    for place in range(max(map(len, behind), default=0)):
        some = [runs[place] if place < len(runs) else None for runs in behind]
        found.append(
            {
                "labels": listed(runs[0] if runs else "" for runs in some),
                "cases": listed(cases.place(runs[1]) if runs else -1 for runs in some),
            }
        )
    return found


# ---- what a row is of ---------------------------------------------------------------------------


def axes_of(one: PageTable) -> list[str]:
    """What the reader's choice may ask of its rows."""
    rows = one.arrangement.view.rows
    return [
        axis for axis in one.arrangement.table.axes if rows and axis_of(rows[0], axis) is not None
    ]


def axis_of(row: Row, axis: str) -> str | None:
    """None where the row has no such axis."""
    if axis == "devices" and "devices_per_node" in row:
        return topology(row.get("nodes", 1), row["devices_per_node"])
    if axis == "devices" and "devices" in row:
        return topology(1, row["devices"])
    return str(row[axis]) if axis in row else None


def _way(row: Row) -> str:
    """As which case of its framework a row has a baseline in another one: with a compiler, the
    usual way or, where nobody does that, without a compiler."""
    if row.get("way"):
        return str(row["way"])
    words = [str(row.get(name, "")) for name in ("framework", "mode", "compiler")]
    framework, mode, compiler = words
    if compiler == UNCOMPILED != overview.usual_compiler(framework, mode):
        return "untypical"
    return overview.way_of(framework, mode, compiler)

