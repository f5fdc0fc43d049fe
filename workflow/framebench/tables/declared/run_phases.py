"""Tables of wall time by phase: all runs together, and one run of each case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...records.run import Run
from ..columns import NUMBER, PERCENT, RESULT_COLUMNS, TENTHS, WHOLE, Column, Row, shared
from ..measured import NO_FRAMEWORK
from ..results import CaseResult, over_runs
from ..table import Drawing, Inputs, Table

#: Title and meaning of each phase.
WORDS = {
    "imports": ("import", "time to import the framework"),
    "build": ("build", "time to build the model and to move its inputs"),
    "first_step": ("first step", "time of the first step, which compiles what is compiled"),
    "warm_up": ("warm-up", "time of the other steps that were thrown away"),
    "window": (
        "window",
        "time of the timed windows: of the throughput and of the steps that are waited for",
    ),
    "other": (
        "other",
        "rest of the wall time: starting, checks, collectives, the step breakdown, the end",
    ),
}
#: Framework of the total.
ALL = "all"


_MEDIANS = {name: over_runs(f"phases.{name}") for name in WORDS}


def _cells(result: CaseResult) -> Row | None:
    """Return sums of the phases' medians; None for a case without a successful run of ours."""
    if not any(run.record for run in result.ok):
        return None
    seconds = {name: median(result) for name, median in _MEDIANS.items()}
    if None in seconds.values():
        reason = "these records do not tell it"
        return {"run_seconds": None, "timed_share": None, "reason": reason}
    whole = sum(seconds.values())
    return {"run_seconds": whole, "timed_share": seconds["window"] / whole, "reason": ""}


def suite_rows(inputs: Inputs) -> Iterator[Row]:
    """Yield total times of all our runs and of those in each framework, longest first."""
    ours = inputs.runs.dropna(subset=["record", "wall_seconds"])
    frameworks = ours.groupby("framework", sort=False)["run"]
    summed = [_sums(str(name) or NO_FRAMEWORK, [*some]) for name, some in frameworks]
    if len(summed) > 1:
        summed.append(_sums(ALL, [*ours["run"]]))
    return iter(sorted(summed, key=lambda row: (row["framework"] != ALL, -row["suite_seconds"])))


def _sums(name: str, runs: Sequence[Run]) -> dict[str, Any]:
    phases = [run.phases for run in runs if run.phases]
    seconds = {phase: sum(getattr(run_phases, phase) for run_phases in phases) for phase in WORDS}
    unattributed = sum(run.wall_seconds or 0.0 for run in runs if not run.phases)
    whole = sum(seconds.values()) + unattributed
    return {
        "framework": name,
        "runs": len(runs),
        "suite_seconds": whole,
        **{f"{name}_seconds": value if phases else None for name, value in seconds.items()},
        "unattributed_seconds": unattributed,
        "timed_share": seconds["window"] / whole if phases else None,
    }


_SECONDS = tuple(
    Column(f"{name}_seconds", NUMBER, what, "s", _MEDIANS[name], f"{title} s", TENTHS)
    for name, (title, what) in WORDS.items()
)
_TIMED = Column(
    "timed_share", NUMBER, "the timed windows over the whole", title="timed %", form=PERCENT
)
SUITE = Table(
    name="suite_phases",
    title="All runs together",
    explanation="Where the time went: seconds of all runs together, by what they were spent on, "
    "and of those in each framework. Only the windows are measured: timed % is its part of the "
    "whole. Retried runs, peak-FLOPS benchmarks, verifications and the building of "
    "environments are not in it; runs that were side by side count one by one.",
    columns=(
        *shared("framework"),
        Column("runs", WHOLE, "runs that say how long they took"),
        Column(
            "suite_seconds", NUMBER, "wall time of these runs", "s", title="whole s", form=TENTHS
        ),
        *_SECONDS,
        Column(
            "unattributed_seconds", NUMBER,
            "wall time of runs whose records do not tell their phases: those that failed, and "
            "other kinds of measurement", "s", title="not told s", form=TENTHS,
        ),
        _TIMED,
    ),
    rows=suite_rows,
    group="Where the time goes",
    drawings=(Drawing("suite_phases"),),
    heading="Where the wall time went",
    needs="suite_seconds",
    keys=("framework",),
    answers=("suite_seconds", "timed_share", "window_seconds", "first_step_seconds"),
    axes=("framework",),
)  # fmt: skip
TABLE = Table(
    name="run_phases",
    title="Phases of a run",
    explanation="Seconds of the parts of a run, as medians over repeats, of the rank whose window "
    "was the longest. What is compiled is compiled in the first step or, ahead of time, "
    "while building. Only the windows are measured: timed % is its part of the whole.",
    columns=(
        *RESULT_COLUMNS,
        Column(
            "run_seconds",
            NUMBER,
            "sum of all phases",
            "s",
            title="whole s",
            form=TENTHS,
            figure=True,
        ),
        *_SECONDS,
        _TIMED,
        *shared("reason"),
    ),
    rows=lambda inputs: inputs.cases_with(_cells),
    group="Where the time goes",
    drawings=(Drawing("run_phases"),),
    heading="Where the wall time went",
    needs="run_seconds",
    answers=("run_seconds", "timed_share"),
    order="run_seconds",
)
TABLES = (SUITE, TABLE)
