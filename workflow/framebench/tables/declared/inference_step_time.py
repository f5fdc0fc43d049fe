"""Step time of inference: percentiles of the steps of every case, in milliseconds. A step is one
batch on every device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ...statistics import descriptive
from ..columns import NUMBER, RESULT_COLUMNS, WHOLE, Column, shared
from ..results import CaseResult, marks_of
from ..table import Inputs, Table

TAILS = (("p90_ms", 0.9), ("p95_ms", 0.95), ("p99_ms", 0.99))


def rows(inputs: Inputs) -> Iterator[list[Any]]:
    """Mean and percentiles over the steps of all ok repeats of an inference case."""
    return map(_row, (one for one in inputs.cases.values() if one.case.mode == "inference"))


def _row(result: CaseResult) -> list[Any]:
    """Steps of one repeat resemble each other more than those of others do: pooled they would count
    as more than they are. So each repeat has percentiles, and the steps that they need."""
    repeats = [[1000 * s for s in run.step_seconds] for run in result.ok if run.step_seconds]
    fewest = min(map(len, repeats), default=0)

    def of_repeats(figure: Callable[[list[float]], float | None]) -> float | None:
        figures = [figure(steps) for steps in repeats]
        known = [one for one in figures if one is not None]
        return descriptive.median(known) if known and len(known) == len(figures) else None

    tails = {name: of_repeats(partial(descriptive.percentile, fraction=p)) for name, p in TAILS}
    if result.status != "ok":
        note = f"{result.status}: {result.reason}"
    elif not repeats:
        note = "no step times in these records"
    else:
        needed = [
            f"{name.removesuffix('_ms')} needs {descriptive.samples_needed(p)}"
            for name, p in TAILS
            if tails[name] is None
        ]
        note = f"{fewest} steps in a repeat: {', '.join(needed)}" if needed else ""
    middles = of_repeats(descriptive.mean), of_repeats(descriptive.median)
    count = sum(map(len, repeats))
    return [
        *result.cells,
        result.status,
        count,
        *middles,
        *tails.values(),
        note,
        marks_of(result),
    ]


def _figure(name: str, what: str, check: str) -> Column:
    title = name.replace("_", " ")
    meaning = f"{what}, as the median over repeats"
    return Column(name, NUMBER, meaning, "ms", title=title, marked=True, check=check)


STEP_TIME = Table(
    name="inference_step_time",
    title="Step time of inference",
    explanation="Milliseconds of one inference step, that is of one batch on every device. It is "
    "no latency of a service: the inputs lie on the device, and the next step is asked for when "
    "the one before has been, so nothing waits for a request, or in a queue. Each figure is the "
    "median over repeats of that of one repeat. Percentiles are nearest-rank and need enough steps "
    "in every repeat to exist (64 for p90, 662 for p99); samples are the steps of all repeats.",
    columns=(
        *RESULT_COLUMNS,
        *shared("status"),
        Column("samples", WHOLE, "timed steps of all repeats", check="repeats"),
        _figure("mean_ms", "mean time of a step", "mean"),
        _figure("p50_ms", "median time of a step", "percentiles"),
        _figure("p90_ms", "90th percentile of the steps", "percentiles"),
        _figure("p95_ms", "95th percentile of the steps", "percentiles"),
        _figure("p99_ms", "99th percentile of the steps", "percentiles"),
        *shared("note", "marks"),
    ),
    rows=rows,
    group="Where the time goes",
    always=True,
    sectioned=True,
)
TABLES = (STEP_TIME,)
