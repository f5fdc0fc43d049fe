"""Explanations of flags, and of the columns of every table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

import pandas as pd

from ..records import verifications, verified
from ..records.fields import flags
from ..statistics import steady
from .columns import COUNT, NUMBER, TEXT, WHOLE, YES_NO, YES_NO_OR_NEITHER, Column, shared
from .results import FIGURES
from .table import Table

FLAGS = {
    "noisy": "the interval is wider than 5 % of the median: not judged with fewer than six "
    "repeats, which have no interval",
    "unsteady": "in a repeat, step times changed or drifted within the timed region, had not "
    f"settled before it, or one step stalled; not judged below {steady.FEWEST_STEPS} steps",
    flags.VANISHED: "the loss was zero at the end of the timed region: the batch was memorised, "
    "and a CPU may compute many times slower with such small gradients",
    flags.RECOMPILED: "the compiler compiled anew within the timed region, which its steps include",
    flags.BROKEN: "the compiler left parts of the model to eager mode",
    flags.SELF_COMPILED: "the model compiles itself, though the compiler is `none`",
    "disturbed": "while a repeat was timed, other processes used its cores, GPU or machine, or "
    "these were throttled",
    "shared": "more cores were requested than there are physical cores: two threads share a core "
    "and slow each other down",
    "peak": "the figure exceeds 95 % of the peak, which no model does: the peak was measured too "
    "low, and the utilization is too high",
    "roof": "memory bandwidth is the lower roof but may not be a bound: the data of a step fit "
    "into the last-level cache, or the figure lies above the roof",
    flags.OWN: "a user's own model, for one framework (docs/own-model.md): no other framework runs "
    "it, and it is verified against its own run in float64",
    verified.FAILED: "results differ from the reference by more than is allowed, in this precision "
    "or in fp32 (see the table verification): the figure is excluded from all comparisons",
    verifications.PARTLY: "part of the work ran in another precision than asked, such as fp32 in "
    "mixed precision: the figure is excluded from all comparisons",
    verified.UNVERIFIED: "no verification against the reference passed for this code, environment "
    "and variables, or it could not be made, which the next call repeats; a figure in another "
    f"precision than fp32 needs those in fp32, too: run {verified.VERIFY_COMMAND}",
}


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
        "What stands in `results/tables/*.csv`. A missing number is an empty cell, and `reason` or",
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
