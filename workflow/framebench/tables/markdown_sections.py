"""Rows of a table under headings, the columns that name a case, and cells that tables share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pandas as pd

from ..cases import names
from . import condition_words
from .markdown_cells import MISSING, Cell, Footnotes, Row, escape, grid, marked, number


def topology(row: Row) -> str:
    """Of the case in a row."""
    return names.topology(row["nodes"], row["devices_per_node"])


def task(row: Row) -> str:
    """Model, mode and unit."""
    return f"{row['model']}, {row['mode']}{unit(row)}"


def unit(row: Row) -> str:
    return f" ({row['unit']})" if "unit" in row else ""


def sections(rows: Sequence[Row], values: Sequence[tuple[str, Cell]]) -> Iterator[str]:
    """One for each model and mode. ``values``: header and cell of what stands behind the names."""
    columns = [*labels(rows), *values]
    for title, part in grouped(rows, task):
        yield f"## {escape(title)}"
        yield ""
        yield from grid_of(columns, part)
        yield ""


def grid_of(columns: Sequence[tuple[str, Cell]], rows: Iterable[Row]) -> list[str]:
    """``columns``: header and cell of each."""
    return grid([h for h, _ in columns], ([cell(row) for _, cell in columns] for row in rows))


def grouped(rows: Iterable[Row], title: Callable[[Row], str]) -> list[tuple[str, list[Row]]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(title(row), []).append(row)
    return sorted(groups.items())


def labels(rows: Sequence[Row]) -> list[tuple[str, Cell]]:
    """The columns that name a case, without those that say nothing in this table."""

    def text(key: str) -> Cell:
        return lambda row: escape(str(row[key])) or MISSING

    def condition(name: str) -> tuple[str, Cell]:
        title = condition_words.TITLES[name].capitalize()
        return title, lambda row: escape(condition_words.text(row[name])) or MISSING

    optional = (("Source", "source"), ("Precision", "precision"), ("Compiler", "compiler"))
    columns = [("Framework", text("framework")), ("Version", text("framework_version"))]
    for header, key in optional:
        if key in rows[0] and len({row[key] for row in rows}) > (key == "source"):
            columns.append((header, text(key)))
    columns += map(condition, condition_words.differing(rows))
    return [*columns, ("Devices", topology), ("bsz", text("batch_per_device"))]


def interval(row: Row, figure: str) -> str:
    """Both ends of a figure's interval; "-" where there are none."""
    low, high = row[f"{figure}_ci_low"], row[f"{figure}_ci_high"]
    return MISSING if pd.isna(low) else f"{number(low)} .. {number(high)}"


def speedup(row: Row, notes: Footnotes) -> str:
    """With its marks, and why it is missing where it is."""
    marks: str = "" if pd.isna(row["speedup"]) else marked(row)
    return number(row["speedup"]) + marks + notes.mark(row["reason"])
