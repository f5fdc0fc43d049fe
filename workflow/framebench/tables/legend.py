"""Explanations of flags, and of the columns of every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import fill

import pandas as pd

from ..config.keys import read_mapping
from .columns import COUNT, NUMBER, TEXT, WHOLE, YES_NO, YES_NO_OR_NEITHER, Column, shared
from .results import FIGURES
from .table import Table

#: Explanation of each flag.
FLAGS: Mapping[str, str] = read_mapping(Path(__file__).with_name("flags.yaml"))


def explanations(tables: Iterable[pd.DataFrame]) -> list[tuple[str, str]]:
    """Return (word, explanation) for each flag and special word that occurs in the tables."""
    words = set()
    for table in tables:
        flags = table["flags"].unique() if "flags" in table else ()
        words |= {word for cell in flags for word in str(cell).split()}
    return [(word, meaning) for word, meaning in FLAGS.items() if word in words]


# ---- columns ------------------------------------------------------------------------------------

_TYPES = {
    **{TEXT: "text", NUMBER: "number"},
    **dict.fromkeys((WHOLE, COUNT), "whole number"),
    **dict.fromkeys((YES_NO, YES_NO_OR_NEITHER), "yes or no"),
}


def columns_page(tables: Sequence[Table]) -> str:
    """Return the page docs/columns.md: columns of several tables, those of each, figures."""
    count = Counter(name for table in tables for name in table.names)
    several = {column.name: column for table in tables for column in table.columns
               if count[column.name] > 1}  # fmt: skip
    lines = [
        "# Columns of the tables",
        "",
        "Content of `results/tables/*.csv`. A missing number is an empty cell, and `reason` or",
        "`note` says why. `published.csv` holds case and conditions as they are printed.",
        "This page is made: `.venv/bin/framebench columns > docs/columns.md`.",
        "",
        "## Of several tables",
        "",
        *_rows(several.values()),
    ]
    for table in tables:
        own = [column for column in table.columns if column.name not in several]
        if own:
            lines += ["", f"## {table.name}", "", fill(table.explanation, 100), "", *_rows(own)]
    figures = [column for column in shared(*FIGURES) if not count[column.name]]
    lines += ["", "## Figures of other benchmarks", "", *_rows(figures)]
    return "\n".join(lines) + "\n"


def _rows(some: Iterable[Column]) -> Iterator[str]:
    yield "| column | type | unit | meaning |"
    yield "|---|---|---|---|"
    for column in some:
        yield f"| {column.name} | {_TYPES[column.type]} | {column.unit} | {column.explanation} |"
