"""Table of the gradients' all-reduce per step: expected and measured alone, in ms."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from core.parallelism import DATA

from ...statistics import descriptive
from ...statistics.intervals import median_interval
from ..columns import Row, interval_cells
from ..expectation import collectives
from ..expectation.collectives import AllReduceLookup
from ..results import CaseResult, flags_of
from ..table import Inputs, declared_table


def rows(inputs: Inputs) -> pd.DataFrame:
    """Return the training cases with gradient all-reduce; none if no collective was measured."""
    lookup = AllReduceLookup(inputs.others)
    return inputs.cases_with(lambda result: _cells(lookup, result) if lookup else None)


def _cells(lookup: AllReduceLookup, result: CaseResult) -> Row | None:
    """Return the figures of a training case with gradient all-reduce; None for other cases.

    1. expected: sum over the run's gradient messages of the time that an all-reduce of that size
       takes alone (see :mod:`..expectation.collectives`); median over the collective's repeats.
    2. alone: all-reduce of these messages after the timed region, all enqueued before the last is
       waited for; median over rounds, then over repeats."""
    case = result.case
    if not (case.mode == "train" and case.devices > 1 and case.parallelism == DATA):
        return None
    run = (result.ok or result.runs)[0]
    measured = lookup.for_run(run)
    sizes = run.gradient_all_reduce.sizes if run.gradient_all_reduce else ()
    alone = [
        1000 * descriptive.median(run.gradient_all_reduce.seconds)
        for run in result.ok
        if run.gradient_all_reduce
    ]
    wanted = _expected(measured, sizes)
    used = [measured] if measured and wanted else []
    return {
        "step_time_ms": step_milliseconds(result),
        "gradient_messages": len(sizes) or None,
        "gradient_bytes": sum(sizes) or None,
        "largest_message_bytes": max(sizes, default=None),
        **_with_interval("expected_all_reduce_ms", wanted),
        **_with_interval("all_reduce_alone_ms", alone),
        "flags": flags_of(result, *used),
        "reason": _reason(result, measured, sizes),
    }


def _expected(measured: CaseResult | None, sizes: Sequence[int]) -> list[float]:
    """Return the expected milliseconds of each of the collective's repeats.

    [] if a message is larger than all measured sizes."""
    runs = measured.ok if measured else ()
    seconds = [collectives.expected(collectives.times_of(run), sizes) for run in runs]
    present = [1000 * value for value in seconds if value is not None]
    return present if len(present) == len(seconds) else []


def _with_interval(name: str, values: Sequence[float]) -> dict[str, float | None]:
    """Return the median of ``values`` in the column ``name``, and its interval."""
    middle = descriptive.median(values) if values else None
    return {name: middle, **interval_cells(name, median_interval(values))}


def _reason(result: CaseResult, measured: CaseResult | None, sizes: Sequence[int]) -> str:
    """Return why there is no expected time, and what to measure; "" if there is one."""
    case = result.case
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    if not sizes:
        return "its records do not say in which messages the gradients went"
    reach = collectives.largest(measured) if measured else 0
    if reach >= max(sizes):
        return ""
    run = result.ok[0]
    needed = f"dtype {collectives.dtype_of(run)}, largest_bytes {max(sizes)} or more"
    if measured:
        return f"all-reduces were measured up to {reach} bytes: {needed}"
    on = f"nodes {case.nodes}, devices_per_node {case.devices_per_node}"
    return f"no all-reduce of {case.framework} measured there: kind collective, {on}, {needed}"


def step_milliseconds(result: CaseResult) -> float | None:
    """Return the time of a step in ms, from the median throughput; None without one."""
    samples = result.case.samples_per_step
    return 1000 * samples / result.throughput if result.throughput else None


COMMUNICATION = declared_table("communication", rows)
TABLES = (COMMUNICATION,)
