"""Where the wall time of a run goes, as a table: how much of it is what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...records.phases import Phases
from ...statistics import descriptive
from ..columns import NUMBER, PERCENT, RESULT_COLUMNS, TENTHS, Column, shared
from ..results import CaseResult
from ..table import Inputs, Table

_WORDS = {
    "imports": ("import", "time to import the framework"),
    "build": ("build", "time to build the model and to move its inputs"),
    "first_step": ("first step", "time of the first step, which compiles what is compiled"),
    "warm_up": ("warm-up", "time of the other steps that were thrown away"),
    "window": ("window", "time of the timed window"),
    "other": ("other", "rest of the wall time: starting, checks, collectives, the split, the end"),
}


def rows(inputs: Inputs) -> Iterator[list[Any]]:
    """A row for each case with a good repeat of ours: the medians over those whose records tell."""
    ours = (one for one in inputs.cases.values() if any(run.record for run in one.ok))
    return map(_row, ours)


def _row(result: CaseResult) -> list[Any]:
    some = [run.phases for run in result.ok if run.phases]
    seconds = [descriptive.median(values) for values in zip(*some, strict=True)]
    if not seconds:
        return [*result.cells, *[None] * (len(_WORDS) + 2), "these records do not tell it"]
    whole = sum(seconds)
    timed = seconds[Phases._fields.index("window")]
    return [*result.cells, whole, *seconds, timed / whole, ""]


TABLE = Table(
    name="run_phases",
    title="Phases of a run",
    explanation="Seconds of the parts of a run, as medians over repeats, of the rank whose window "
    "was the longest. What is compiled is compiled in the first step or, ahead of time, "
    "while building. Only the window is measured: timed % is its part of the whole.",
    columns=(
        *RESULT_COLUMNS,
        Column("run_seconds", NUMBER, "sum of all phases", "s", title="whole s", form=TENTHS),
        *(
            Column(f"{name}_seconds", NUMBER, what, "s", title=f"{title} s", form=TENTHS)
            for name, (title, what) in _WORDS.items()
        ),
        Column(
            "timed_share", NUMBER, "the timed window over all phases", title="timed %",
            form=PERCENT,
        ),
        *shared("reason"),
    ),
    rows=rows,
    group="Where the time goes",
    needs="run_seconds",
)  # fmt: skip
TABLES = (TABLE,)
