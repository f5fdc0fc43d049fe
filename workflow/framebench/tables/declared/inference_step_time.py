"""Table of inference step times: percentiles of each case in ms.

A step is one batch on every device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, starmap

from ...cases.conditions import Key
from ...statistics import descriptive
from ..columns import (
    NUMBER,
    RESULT_COLUMNS,
    TEXT,
    WHOLE,
    Column,
    Row,
    interval,
    interval_cells,
    shared,
    why_no_interval,
)
from ..results import CaseResult, median_interval
from ..table import Inputs, Table

#: Fraction of the steps at or below each percentile.
PERCENTILES = {
    "p50_ms": 0.5,
    "p90_ms": 0.9,
    "p95_ms": 0.95,
    "p99_ms": 0.99,
    "p99_9_ms": 0.999,
}
#: Highest percentile that is shown even if no case has enough steps.
_USUAL = 0.99


def cells(result: CaseResult) -> Row:
    """Return mean and percentiles of the steps of an inference case."""
    waited = [run for run in result.ok if run.waited_seconds]
    repeats = [sorted(1000 * s for s in run.waited_seconds) for run in waited]
    percentiles: dict[str, float | None] = {}
    for name, part in PERCENTILES.items():
        figures = [descriptive.percentile(steps, part) for steps in repeats]
        median, ends = _over_repeats(figures)
        percentiles |= {name: median, **interval_cells(name, ends)}
    missing = [name for name in PERCENTILES if percentiles[name] is None]
    return {
        "samples": sum(map(len, repeats)),
        "mean_ms": _over_repeats([descriptive.mean(steps) for steps in repeats])[0],
        **percentiles,
        "waited_in": ", ".join(sorted({run.waited_in or "not recorded" for run in waited})),
        "note": _note(result, repeats, missing),
    }


def _over_repeats(
    figures: Sequence[float | None],
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the median over the repeats' figures, and its interval.

    Steps of one repeat are correlated; pooled, they would count as more than they are. Repeats are
    independent, so the interval is computed from one figure per repeat (independent replications:
    Law, *Simulation Modeling and Analysis*, 5th ed., 2015, chapter 9). None if a repeat has no
    figure."""
    present = [figure for figure in figures if figure is not None]
    if not present or len(present) < len(figures):
        return None, None
    return descriptive.median(present), median_interval(present)


def _note(result: CaseResult, repeats: Sequence[Sequence[float]], missing: Sequence[str]) -> str:
    """Return why there is no figure, or why those in ``missing`` are missing."""
    if result.status != "ok":
        return f"{result.status}: {result.reason}"
    if not repeats:
        return "no step times in these records"
    needed = [
        f"{_short(name)} needs {descriptive.samples_needed(PERCENTILES[name])}" for name in missing
    ]
    return f"{min(map(len, repeats))} steps in a repeat: {', '.join(needed)}" if needed else ""


def _short(name: str) -> str:
    """Return the usual name of a percentile: p99.9."""
    return name.removesuffix("_ms").replace("_", ".")


def _percentile(name: str, part: float) -> list[Column]:
    short = _short(name)
    meaning = (
        f"{100 * part:g}th percentile of the steps of a repeat, by nearest rank, as the median "
        f"over repeats; it needs {descriptive.samples_needed(part)} steps in each"
    )
    return [
        Column(
            name, NUMBER, meaning, "ms", title=f"{short} ms", flagged=True, figure=True,
            optional=part > _USUAL,
        ),
        *interval(
            name, f"the {short}", "ms", title="95 % interval", optional=True,
            why=why_no_interval(name),
        ),
    ]  # fmt: skip


STEP_TIME = Table(
    name="inference_step_time",
    title="Step time of inference",
    explanation="Milliseconds of one inference step, that is of one batch on every device. It is "
    "no latency of a service: the inputs lie on the device, and the next step is asked for when "
    "the one before is complete, so nothing waits for a request, or in a queue. Each figure is the "
    "median over repeats of that of one repeat, and its interval that of repeats: steps of one "
    "repeat resemble each other. Percentiles are nearest-rank (definition 1 of Hyndman and Fan), a "
    "step time that occurred. They need so many steps in every repeat that two or more lie above "
    "the true percentile with a confidence of 99 %; samples are the steps of all repeats.",
    columns=(
        *RESULT_COLUMNS,
        *shared("status"),
        Column("samples", WHOLE, "such steps of all repeats"),
        Column(
            "mean_ms",
            NUMBER,
            "mean time of a step of a repeat, as the median over repeats",
            "ms",
            title="mean ms",
            flagged=True,
            figure=True,
        ),
        *chain.from_iterable(starmap(_percentile, PERCENTILES.items())),
        Column(
            "waited_in",
            TEXT,
            "where these steps were timed, each complete before the next began: in a window of "
            "their own behind that of the throughput, or in that one, where a step returns "
            "complete; older records do not tell, and on GPUs their steps of PyTorch overlapped",
            title="timed in",
            hoisted=True,
        ),
        *shared("note", "flags"),
    ),
    rows=lambda inputs: inputs.cases_with(
        lambda result: cells(result) if result.case.mode == "inference" else None
    ),
    group="Where the time goes",
    always=True,
    sectioned=True,
    answers=("p50_ms", "p99_ms", "mean_ms"),
    order="-p50_ms",
)
TABLES = (STEP_TIME,)


def by_case(inputs: Inputs) -> dict[Key, Row]:
    """Return the rows by key of the case."""
    from ..view import records  # slow to import, and plans make no rows

    timed = (key for key, result in inputs.cases.items() if result.case.mode == "inference")
    return dict(zip(timed, records(inputs.made(STEP_TIME)), strict=True))
