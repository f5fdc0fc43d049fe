"""Table of steps with an input pipeline: rates of loader and compute, and which one limits."""

from __future__ import annotations

from collections.abc import Iterator

from ...records.fields.fed import Fed
from ...statistics import descriptive
from ..columns import COUNT, NUMBER, PERCENT, RESULT_COLUMNS, TENTHS, TEXT, Column, Row, shared
from ..results import CaseResult
from ..table import Inputs, Table

#: Fraction by which loader and compute rates must differ for one to be the limit.
CLEAR = 0.05
LOADER, COMPUTE, BOTH = "loader", "compute", "both"


def rows(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per case with an input pipeline, with medians over successful repeats."""
    for result in inputs.cases.values():
        if any(run.fed for run in result.ok):
            yield _row(result)


def _row(result: CaseResult) -> Row:
    runs = [run for run in result.ok if run.fed]
    found = [run.fed for run in runs if run.fed]
    total = descriptive.median([run.throughput for run in runs if run.throughput])
    compute = descriptive.median([one.compute for one in found])
    loaders = [one.loader for one in found if one.loader is not None]
    loader = descriptive.median(loaders) if loaders else None
    return {
        "result": result,
        "total_throughput": total,
        "compute_throughput": compute,
        "loader_throughput": loader,
        "limited_by": limit(compute, loader),
        "wait_ms": 1e3 * descriptive.median([one.wait for one in found]),
        "copy_ms": 1e3 * descriptive.median([one.copy for one in found]),
        "of_compute": total / compute,
        "skipped_images": _skipped(found),
    }


def _skipped(found: list[Fed]) -> int | None:
    counts = [one.skipped for one in found if one.skipped is not None]
    return max(counts) if counts else None


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
            title="in all", form=TENTHS, figure=True,
        ),
        Column(
            "compute_throughput", NUMBER, "samples/s of steps that are given nothing",
            title="compute alone", form=TENTHS,
        ),
        Column(
            "loader_throughput", NUMBER,
            "samples/s of the loaders of all ranks without steps, from the third batch on",
            title="loader alone", form=TENTHS,
        ),
        *shared("unit"),
        Column(
            "limited_by", TEXT,
            f"`{LOADER}` or `{COMPUTE}`, whose rate is lower by more than {CLEAR:.0%}; else "
            f"`{BOTH}`",
        ),
        Column(
            "wait_ms", NUMBER, "time until a step's batch was there, of a median step", "ms",
            title="wait ms", form=TENTHS,
        ),
        Column(
            "copy_ms", NUMBER,
            "time until the call that copies it to the device had returned, of a median step",
            "ms", title="copy ms", form=TENTHS,
        ),
        Column(
            "of_compute", NUMBER, "throughput in all over that of the computation alone",
            title="in all, % of compute", form=PERCENT,
        ),
        Column(
            "skipped_images", COUNT, "bad images, texts or records that were left out",
            title="skipped",
        ),
    ),
    rows=rows,
    group="Where the time goes",
    heading="Loading and computing",
    needs="total_throughput",
    answers=("total_throughput", "compute_throughput", "loader_throughput", "limited_by"),
    order="total_throughput",
)  # fmt: skip
TABLES = (TABLE,)
