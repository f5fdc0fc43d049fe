"""Where the time of a training step goes, as a table."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pandas as pd

from ..cases.conditions import KEYS
from ..records.step_parts import PARTS
from ..statistics import descriptive
from .cases import CaseResult, CaseResults, marks_of
from .columns import frame
from .markdown_cells import MISSING, Cell, Footnotes, Row, marked, number

#: All data there is so far is made and copied to the device before the window.
DATA = "none: on the device before the window"
COLUMNS = (
    *KEYS,
    "step_ms",
    "data",
    *(f"{part}_ms" for part in PARTS),
    *(f"{part}_share" for part in PARTS),
    "sum_over_step",
    "split_steps",
    "how",
    "marks",
    "reason",
)
EXPLANATION = (
    "Milliseconds of the parts of a training step, and their share of its sum. They are timed in "
    "further steps behind the timed window, each part waited for, in the first repeat: nothing is "
    "added to the window. A part that cannot be timed alone is a difference of two passes, which "
    "may fall below zero where it is less than their noise; all-reduce is what it adds to the "
    "pass that it overlaps with. Sum/step is the sum over the median step of the window: believe a "
    "split as far as that is near one. Data: none, because it is on the device before the window."
)


def table(cases: CaseResults) -> pd.DataFrame:
    """A row for every training case: the medians over its ok repeats that have a split."""
    rows = [_row(result) for result in cases.values() if result.case.mode == "train"]
    return frame(COLUMNS, rows)


def _row(result: CaseResult) -> list[Any]:
    with_split = [(run, run.split) for run in result.ok if run.split and run.split.seconds]
    steps = [descriptive.median(run.step_seconds) for run, _ in with_split]
    samples: dict[str, list[float]] = defaultdict(list)
    for _, split in with_split:
        for name, seconds in split.seconds:
            # what is in one stands in the column of the first; `how` names it in full
            samples[name.partition("+")[0]].append(seconds)
    found = {name: descriptive.median(seconds) for name, seconds in samples.items()}
    total = sum(found.values())
    step = descriptive.median(steps) if steps else None
    figures = [found.get(part) for part in PARTS]
    return [
        *result.key.cells,
        None if step is None else 1000 * step,
        DATA if with_split else "",
        *(None if value is None else 1000 * value for value in figures),
        *(None if value is None else value / total for value in figures),
        total / step if step else None,
        sum(split.steps for _, split in with_split),
        "; ".join(dict.fromkeys(split.how for _, split in with_split)),
        marks_of(result),
        "" if with_split else _reason(result),
    ]


def _reason(result: CaseResult) -> str:
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    told = [run.split.reason for run in result.ok if run.split and run.split.reason]
    return told[0] if told else "no split in these records"


def values(notes: Footnotes) -> list[tuple[str, Cell]]:
    """Header and cell of each column in Markdown."""

    def part(name: str) -> Cell:
        def cell(row: Row) -> str:
            if pd.isna(row[f"{name}_ms"]):
                return MISSING
            return f"{number(row[f'{name}_ms'], 1)} ({100 * row[f'{name}_share']:.0f} %)"

        return cell

    def together(row: Row) -> str:
        if pd.isna(row["sum_over_step"]):
            return MISSING + notes.mark(row["reason"])
        return number(row["sum_over_step"]) + marked(row) + notes.mark(row["how"])

    return [
        ("Step (ms)", lambda row: number(row["step_ms"], 1)),
        *((name.replace("_", "-").capitalize(), part(name)) for name in PARTS),
        ("Sum/step", together),
        ("Steps", lambda row: str(row["split_steps"])),
    ]
