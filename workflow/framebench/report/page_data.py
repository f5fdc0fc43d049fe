"""Data of the page's tables for its script, which filters, sorts, unfolds and draws rows.

Cells are the texts of :mod:`tables.view`; numbers are added only where ratios are computed from
them. A column is an index into ``lists``, because many tables share cases. Each list has its
shortest form: ``{"same": value}``, ``{"of": [values], "at": [index of each]}``, or the list itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ..records.run import Run
from ..records.sidecars.calls import CallEntry
from ..tables.columns import Row
from ..tables.declared import overview
from ..tables.formatting import Cell
from ..tables.results import UNCOMPILED
from ..tables.table import AXES
from ..tables.view import Field
from . import again
from .html_tables import PageTable
from .record_links import RowLinks
from .selection import axis_of

#: A word of a path or case name, with the separator that ends it.
_WORDS = re.compile(r"[^-/ ]*[-/ ]|[^-/ ]+")
#: Significant digits of numbers for ratios: more than any cell shows.
DIGITS = 7
#: Columns in which a case may differ from its baseline in another framework.
_OF_FRAMEWORK = ("framework_version", "source", "environment", "flags")
#: Columns that the axes represent.
_OF_AXES = (*(axis for axis in AXES if axis != "devices"), "nodes", "devices_per_node")


def page_data(
    tables: Sequence[PageTable],
    links: RowLinks,
    calls: Sequence[CallEntry],
    series: Mapping[str, int],
    contests: Callable[[Any, Any], Mapping[str, Any]] | None = None,
) -> Markup:
    """Return the data as JSON for a script element.

    ``series``: colour number of each framework. ``contests``: returns the settings of the first
    screen, given a function that stores runs and one that stores lists."""
    lists = _Lists()
    cases = _Cases(links, calls)
    made = [_table(table, links, cases, lists) for table in tables]
    data = {
        "axes": AXES,
        "tables": made,
        "contests": contests(cases.place, lists.number) if contests else None,
        "cases": cases.data(lists),
        "series": series,
        "lists": lists.written,
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Escaped, so that no text ends the element or begins a comment.
    return Markup(text.replace("<", "\\u003c"))


class _Lists:
    """Store of distinct lists. ``written``: lists in their shortest form."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Any, ...], int] = {}
        self.written: list[Any] = []

    def number(self, values: Iterable[Any]) -> int:
        """Return the number of a list of texts, numbers and None."""
        key = tuple(values)
        if key not in self._numbers:
            self._numbers[key] = len(self.written)
            self.written.append(_written(key))
        return self._numbers[key]

    def parts(self, texts: Sequence[str]) -> list[int]:
        """Return numbers of lists of words, one list per word position.

        Texts are split into words because cases share most words."""
        split = [_WORDS.findall(text) for text in texts]
        longest = max(map(len, split), default=0)
        return [
            self.number(words[at] if at < len(words) else "" for words in split)
            for at in range(longest)
        ]


def _written(values: Sequence[Any]) -> Any:
    distinct = dict.fromkeys(values)
    if len(distinct) == 1:
        return {"same": values[0]}
    if len(distinct) * 2 < len(values):
        places = {value: index for index, value in enumerate(distinct)}
        return {"of": list(distinct), "at": [places[value] for value in values]}
    return list(values)


class _Cases:
    """Groups of runs behind rows, each stored once.

    Data of a group: links to records, name of the case, command that measures it again, and figures
    of its repeats."""

    def __init__(self, links: RowLinks, calls: Sequence[CallEntry]) -> None:
        self._links, self._calls = links, again.timed(calls)
        self._places: dict[tuple[int, ...], int] = {}
        self._groups: list[Sequence[Run]] = []

    def place(self, runs: Sequence[Run]) -> int:
        key = tuple(map(id, runs))
        if key not in self._places:
            self._places[key] = len(self._groups)
            self._groups.append(runs)
        return self._places[key]

    def data(self, lists: _Lists) -> dict[str, Any]:
        hrefs = [[(link.text, link.href) for link in self._links.to(runs)] for runs in self._groups]
        folders = [_folder([href for _, href in some]) for some in hrefs]
        records = [
            [part for text, href in some for part in (text, href.removeprefix(folder))]
            for some, folder in zip(hrefs, folders, strict=True)
        ]
        return {
            "count": len(self._groups),
            "names": lists.parts([again.case_of(runs[0]) for runs in self._groups]),
            "folders": lists.parts(folders),
            # Text and file of each link, alternating.
            "records": lists.number("\t".join(some) for some in records),
            "commands": lists.number(self._command(runs[0]) for runs in self._groups),
            "repeats": [
                [short(run.figure) for run in runs if run.figure is not None]
                for runs in self._groups
            ],
        }

    def _command(self, run: Run) -> str:
        """Return the command without the case; "" if the call is unknown or not offered."""
        call = again.call_of(run, self._calls)
        try:
            return again.command(call) if call else ""
        except ValueError:
            return ""


def _folder(hrefs: Sequence[str]) -> str:
    """Return the folder that all links share, with a slash; "" if there is none."""
    folders = {href.rpartition("/")[0] for href in hrefs}
    return f"{folders.pop()}/" if len(folders) == 1 and "/" in hrefs[0] else ""


def _table(page_table: PageTable, links: RowLinks, cases: _Cases, lists: _Lists) -> dict[str, Any]:
    view, table = page_table.arrangement.view, page_table.arrangement.table
    rows = view.rows
    results: dict[str, Any] = {
        "name": table.name,
        "title": table.title,
        "units": lists.number(str(row.get("unit") or "") for row in rows),
        "rows": len(rows),
        "shown": [
            {
                **_column(shown.fields[0] if len(shown.fields) == 1 else None, lists),
                "title": shown.title,
                "kind": shown.kind,
                "answer": shown.is_answer,
                "cells": lists.number(_text(shown.cell(at)) for at in range(len(rows))),
            }
            for shown in page_table.arrangement.shown
        ],
        "unfolded": [
            {"title": field.title, "cells": lists.number(map(_text, field.cells))}
            for field in page_table.arrangement.unfolded
        ],
        "axes": {
            axis: lists.number(axis_of(row, axis) for row in rows) for axis in axes_of(page_table)
        },
    }
    if any("raw" in column for column in results["shown"]):
        names = [name for name in table.keys if rows and name in rows[0]]
        rest = [name for name in names if name not in (*_OF_AXES, *_OF_FRAMEWORK)]
        texts = ([str(row[name]) for name in rest] for row in rows)
        results["rest"] = lists.number("\t".join(some) for some in texts)
        results["ways"] = lists.number(map(_way, rows))
    if page_table.links is not None:
        results["behind"] = _references(page_table, links, cases, lists)
    if table.order:
        results["order"] = {
            "name": table.order.removeprefix("-"),
            "down": page_table.arrangement.falls,
        }
    if table.crosstabs:
        results["across"] = "framework"
    results["ids"] = lists.number(page_table.ids)
    return results


def _column(field: Field | None, lists: _Lists) -> dict[str, Any]:
    """Return a column's metadata for the script."""
    if field is None:
        return {}
    results: dict[str, Any] = {"name": field.column.name}
    looks = {cell.text: cell.kind for cell in field.cells if cell.kind.startswith("status")}
    if looks:
        results["looks"] = looks
    if field.column.figure:
        results["raw"] = lists.number(_raw(cell) for cell in field.cells)
    return results


def _raw(cell: Cell) -> float | None:
    if cell.is_missing:
        return None
    return short(float(cell.sort or cell.text))


def short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _text(cell: Cell) -> str:
    """Return a cell's text and, after a tab, its flags or why it is missing."""
    small = cell.why or cell.flags
    return f"{cell.text}\t{small}" if small else cell.text


def _references(
    page_table: PageTable, links: RowLinks, cases: _Cases, lists: _Lists
) -> list[dict[str, Any]]:
    """Return, per position behind a row, labels and case numbers; -1 for no case."""
    table = page_table.arrangement.table
    behind = [links.runs(table, row) for row in page_table.arrangement.view.rows]
    results = []
    for index in range(max(map(len, behind), default=0)):
        some = [runs[index] if index < len(runs) else None for runs in behind]
        results.append(
            {
                "labels": lists.number(runs[0] if runs else "" for runs in some),
                "cases": lists.number(cases.place(runs[1]) if runs else -1 for runs in some),
            }
        )
    return results


# ---- what a row is of ---------------------------------------------------------------------------


def axes_of(page_table: PageTable) -> list[str]:
    """Return the axes that the table's rows have."""
    rows = page_table.arrangement.view.rows
    return [
        axis
        for axis in page_table.arrangement.table.axes
        if rows and axis_of(rows[0], axis) is not None
    ]


def _way(row: Row) -> str:
    """Return how a case runs, to match it with a baseline in another framework.

    Ways: with a compiler, the default way, or without the compiler that the framework always trains
    with ("untypical")."""
    if row.get("compilation"):
        return str(row["compilation"])
    words = [str(row.get(name, "")) for name in ("framework", "mode", "compiler")]
    framework, mode, compiler = words
    if compiler == UNCOMPILED != overview.usual_compiler(framework, mode):
        return "untypical"
    return overview.compilation_of(framework, mode, compiler)
