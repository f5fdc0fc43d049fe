"""The page docs/columns.md, generated: meaning of the columns of every table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from . import measured
from .columns import COLUMNS, COUNT, NUMBER, TEXT, WHOLE, YES_NO, YES_NO_OR_NEITHER, Column
from .table import Table

_TYPES = {
    TEXT: "text",
    WHOLE: "whole number",
    COUNT: "whole number",
    NUMBER: "number",
    YES_NO: "yes or no",
    YES_NO_OR_NEITHER: "yes or no",
}


def text(tables: Sequence[Table]) -> str:
    """Return the page.

    Shared columns come first, those of benchmarks other than steps last."""
    lines = [
        "# Columns of the tables",
        "",
        "What stands in `results/tables/*.csv`. A missing number is an empty cell, and `reason` or",
        "`note` says why. `published.csv` holds case and conditions as they are printed.",
        "This page is made: `.venv/bin/framebench columns > docs/columns.md`.",
        "",
        "## Of several tables",
        "",
        *_rows(COLUMNS.values()),
    ]
    explained = set(COLUMNS)
    for table in tables:
        own = [column for column in table.columns if column.name not in explained]
        explained.update(column.name for column in own)
        if own:
            lines += ["", f"## {table.name}", "", fill(table.explanation, 100), "", *_rows(own)]
    figures = [column for column in measured.FIGURES if column.name not in COLUMNS]
    lines += [
        "",
        "## Parameters and figures of other benchmarks",
        "",
        *_rows([measured.METRIC, *figures]),
    ]
    return "\n".join(lines) + "\n"


def _rows(columns: Iterable[Column]) -> Iterator[str]:
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    for column in columns:
        yield f"| {column.name} | {_TYPES[column.type]} | {column.unit} | {column.explanation} |"
