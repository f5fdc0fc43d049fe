"""Tables of the time of steps: percentiles of inference, input pipelines.

A step is one batch on every device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...statistics import descriptive
from ...statistics.intervals import median_interval
from ..columns import Row, interval_cells
from ..results import CaseResult, over_runs
from ..table import declared_table

#: Fraction of the steps at or below each percentile.
PERCENTILES = {
    "p50_ms": 0.5,
    "p90_ms": 0.9,
    "p95_ms": 0.95,
    "p99_ms": 0.99,
    "p99_9_ms": 0.999,
}
#: Fraction by which loader and compute rates must differ for one to be the limit.
CLEAR = 0.05
LOADER, COMPUTE, BOTH = "loader", "compute", "both"


# ---- step times of inference --------------------------------------------------------------------


def step_times(result: CaseResult) -> Row:
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
        "note": _why_missing(result, repeats, missing),
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


def _why_missing(
    result: CaseResult, repeats: Sequence[Sequence[float]], missing: Sequence[str]
) -> str:
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


# ---- steps with an input pipeline ---------------------------------------------------------------


def _pipeline(case: CaseResult) -> Row | None:
    """Return the figures of a case; None without an input pipeline."""
    if not any(run.input_pipeline for run in case.ok):
        return None

    def median(name: str) -> Any:
        return over_runs(lambda run: getattr(run.input_pipeline, name, None))(case)

    total = over_runs(lambda run: run.throughput if run.input_pipeline else None)(case)
    compute, loader, wait, copy = map(median, ("compute", "loader", "wait", "copy"))
    return {
        "total_throughput": total,
        "compute_throughput": compute,
        "loader_throughput": loader,
        "limited_by": limit(compute, loader),
        "wait_ms": 1e3 * wait,
        "copy_ms": 1e3 * copy,
        "of_compute": total / compute,
        "skipped_images": over_runs(lambda run: getattr(run.input_pipeline, "skipped", None), max)(
            case
        ),
    }


def limit(compute: float, loader: float | None) -> str:
    """Return which rate is lower by more than CLEAR; "" without a loader rate."""
    if loader is None:
        return ""
    if loader < (1 - CLEAR) * compute:
        return LOADER
    return COMPUTE if compute < (1 - CLEAR) * loader else BOTH


STEP_TIME = declared_table(
    "inference_step_time",
    lambda inputs: inputs.cases_with(
        lambda result: step_times(result) if result.case.mode == "inference" else None
    ),
)
INPUT_PIPELINE = declared_table("input_pipeline", lambda inputs: inputs.cases_with(_pipeline))
TABLES = (STEP_TIME, INPUT_PIPELINE)
