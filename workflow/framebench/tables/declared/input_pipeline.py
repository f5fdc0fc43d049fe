"""Table of steps with an input pipeline: rates of loader and compute, and which one limits."""

from __future__ import annotations

from ..columns import COUNT, NUMBER, PERCENT, RESULT_COLUMNS, TENTHS, TEXT, Column, Value, shared
from ..results import over_runs
from ..table import Table

#: Fraction by which loader and compute rates must differ for one to be the limit.
CLEAR = 0.05
LOADER, COMPUTE, BOTH = "loader", "compute", "both"


_total = over_runs(lambda run: run.throughput if run.input_pipeline else None)
_compute, _loader = over_runs("input_pipeline.compute"), over_runs("input_pipeline.loader")


def _milliseconds(path: str) -> Value:
    seconds = over_runs(path)
    return lambda case: 1e3 * seconds(case)


def limit(compute: float, loader: float | None) -> str:
    """Return which rate is lower by more than CLEAR; "" without a loader rate."""
    if loader is None:
        return ""
    if loader < (1 - CLEAR) * compute:
        return LOADER
    return COMPUTE if compute < (1 - CLEAR) * loader else BOTH


TABLE = Table(
    name="input_pipeline",
    title="Loading and computing",
    explanation="Steps that get a new batch from the host. In all: throughput of loading and "
    "computing together. Compute alone: the same steps with one batch. Loader alone: the loader "
    "without steps. The slower one of the two limits. Medians over repeats.",
    columns=(
        *RESULT_COLUMNS,
        Column(
            "total_throughput", NUMBER, "samples/s of loading and computing together",
            value=_total, title="in all", form=TENTHS, figure=True,
        ),
        Column(
            "compute_throughput", NUMBER, "samples/s of steps that are given nothing",
            value=_compute, title="compute alone", form=TENTHS,
        ),
        Column(
            "loader_throughput", NUMBER,
            "samples/s of the loaders of all ranks without steps, from the third batch on",
            value=_loader, title="loader alone", form=TENTHS,
        ),
        *shared("unit"),
        Column(
            "limited_by", TEXT,
            f"`{LOADER}` or `{COMPUTE}`, whose rate is lower by more than {CLEAR:.0%}; else "
            f"`{BOTH}`", value=lambda case: limit(_compute(case), _loader(case)),
        ),
        Column(
            "wait_ms", NUMBER, "time until a step's batch was there, of a median step", "ms",
            _milliseconds("input_pipeline.wait"), title="wait ms", form=TENTHS,
        ),
        Column(
            "copy_ms", NUMBER,
            "time until the call that copies it to the device had returned, of a median step",
            "ms", _milliseconds("input_pipeline.copy"), title="copy ms", form=TENTHS,
        ),
        Column(
            "of_compute", NUMBER, "throughput in all over that of the computation alone",
            value=lambda case: _total(case) / _compute(case), title="in all, % of compute",
            form=PERCENT,
        ),
        Column(
            "skipped_images", COUNT, "bad images that were left out",
            value=over_runs("input_pipeline.skipped", max), title="skipped",
        ),
    ),
    rows=lambda inputs: inputs.cases_with(
        lambda case: {} if any(run.input_pipeline for run in case.ok) else None
    ),
    group="Where the time goes",
    heading="Loading and computing",
    needs="total_throughput",
    answers=("total_throughput", "compute_throughput", "loader_throughput", "limited_by"),
    order="total_throughput",
)  # fmt: skip
TABLES = (TABLE,)
