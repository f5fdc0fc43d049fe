"""Table of steps with an input pipeline: rates of loader and compute, and which one limits."""

from __future__ import annotations

from ..columns import Row
from ..results import CaseResult, over_runs
from ..table import declared_table

#: Fraction by which loader and compute rates must differ for one to be the limit.
CLEAR = 0.05
LOADER, COMPUTE, BOTH = "loader", "compute", "both"

_total = over_runs(lambda run: run.throughput if run.input_pipeline else None)
_compute, _loader = over_runs("input_pipeline.compute"), over_runs("input_pipeline.loader")
_wait, _copy = over_runs("input_pipeline.wait"), over_runs("input_pipeline.copy")
_skipped = over_runs("input_pipeline.skipped", max)


def _cells(case: CaseResult) -> Row | None:
    """Return the figures of a case; None without an input pipeline."""
    if not any(run.input_pipeline for run in case.ok):
        return None
    total, compute, loader = _total(case), _compute(case), _loader(case)
    return {
        "total_throughput": total,
        "compute_throughput": compute,
        "loader_throughput": loader,
        "limited_by": limit(compute, loader),
        "wait_ms": 1e3 * _wait(case),
        "copy_ms": 1e3 * _copy(case),
        "of_compute": total / compute,
        "skipped_images": _skipped(case),
    }


def limit(compute: float, loader: float | None) -> str:
    """Return which rate is lower by more than CLEAR; "" without a loader rate."""
    if loader is None:
        return ""
    if loader < (1 - CLEAR) * compute:
        return LOADER
    return COMPUTE if compute < (1 - CLEAR) * loader else BOTH


TABLE = declared_table("input_pipeline", lambda inputs: inputs.cases_with(_cells))
TABLES = (TABLE,)
