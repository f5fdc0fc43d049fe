"""Table of the gradients' all-reduce per step: expected, measured alone, and lost time, in ms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from core.parallelism import DATA

from ...statistics import descriptive
from .. import losses
from ..columns import (
    COLUMNS,
    COUNT,
    NUMBER,
    RESULT_COLUMNS,
    THREE_DIGITS,
    Column,
    Row,
    interval,
    interval_cells,
    shared,
    why_no_interval,
    why_no_ratio_interval,
)
from ..expectation import collectives
from ..expectation.collectives import AllReduceLookup
from ..results import CaseResult, CaseResults, flags_of, median_interval
from ..table import Drawing, Table
from .scaling import WEAK

if TYPE_CHECKING:  # slow to import, and plans need only names
    from ...statistics.intervals import Interval

#: Without flags, because the row's flags include those of other figures.
THROUGHPUT = replace(COLUMNS["throughput_median"], flagged=False)


def _cells(lookup: AllReduceLookup, others: CaseResults, result: CaseResult) -> Row | None:
    """Return the figures of a training case with gradient all-reduce.

    None for other cases, and if no collective was measured.

    1. expected: sum over the run's gradient messages of the time that an all-reduce of that size
       takes alone (see :mod:`..expectation.collectives`); median over the collective's repeats.
    2. alone: all-reduce of these messages after the timed region, all enqueued before the last is
       waited for; median over rounds, then over repeats.
    3. lost: total batch x (1 / throughput - 1 / throughput of the control), whose devices train at
       the same time without communication."""
    case = result.case
    if not (lookup and case.mode == "train" and case.devices > 1 and case.parallelism == DATA):
        return None
    control = losses.control_of(result, others)
    run = (result.ok or result.runs)[0]
    measured = lookup.for_run(run)
    sizes = run.gradient_all_reduce.sizes if run.gradient_all_reduce else ()
    alone = [
        1000 * descriptive.median(run.gradient_all_reduce.seconds)
        for run in result.ok
        if run.gradient_all_reduce
    ]
    wanted = _expected(measured, sizes)
    ratio = descriptive.median(alone) / descriptive.median(wanted) if alone and wanted else None
    used = [measured] if measured and wanted else []
    lost, lost_ends = _lost(result, control)
    return {
        "gradient_messages": len(sizes) or None,
        "gradient_bytes": sum(sizes) or None,
        "largest_message_bytes": max(sizes, default=None),
        **_with_interval("expected_all_reduce_ms", wanted),
        **_with_interval("all_reduce_alone_ms", alone),
        "alone_over_expected": ratio,
        **interval_cells("alone_over_expected", _ratio_interval(wanted, alone)),
        "lost_to_communication_ms": lost,
        **interval_cells("lost_to_communication_ms", lost_ends),
        "flags": flags_of(result, *used, *([control] if control and lost is not None else [])),
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


def _ratio_interval(base: Sequence[float], values: Sequence[float]) -> Interval | None:
    from ...statistics import intervals  # slow to import, and plans make no rows

    return intervals.ratio_interval(base, values) if base and values else None


def _lost(
    result: CaseResult, control: CaseResult | None
) -> tuple[float | None, tuple[float, float] | None]:
    """Return the lost milliseconds per step, and their interval.

    The interval's ends are the extremes over both throughputs' intervals, which jointly hold as
    often as one of 95 % (see :mod:`..losses`)."""
    from ...statistics import intervals  # as above

    if not (result.throughput and control and control.throughput):
        return None, None
    samples = 1000 * result.case.samples_per_step
    lost = samples / result.throughput - samples / control.throughput
    own = intervals.median_interval(result.values, losses.BOTH)
    other = intervals.median_interval(control.values, losses.BOTH)
    if own is None or other is None:
        return lost, None
    (low, high), (least, most) = own, other
    return lost, (samples / high - samples / least, samples / low - samples / most)


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


def _milliseconds(name: str, meaning: str, title: str, **shown: Any) -> Column:
    return Column(
        f"{name}_ms", NUMBER, meaning, "ms", title=f"{title} ms", form=THREE_DIGITS, **shown
    )


def _interval(name: str, quantity: str, **shown: Any) -> list[Column]:
    options = {"why": why_no_interval(f"{name}_ms"), "title": "interval ms", **shown}
    return interval(f"{name}_ms", quantity, "ms", form=THREE_DIGITS, **options)


STEP_TIME = _milliseconds(
    "step_time", "samples of a step over the throughput", "step", value=step_milliseconds
)
COMMUNICATION = Table(
    name="communication",
    title="Communication of the gradients: expected and measured",
    explanation="Milliseconds of a training step. Expected: sum over the step's gradient messages "
    "of the time of a stand-alone all-reduce of that size, interpolated between the sizes that "
    "kind collective measured in the same framework on as many devices. Alone: all-reduce of "
    "these messages after the timed region, all in flight at once. Lost: step time minus that of "
    "as many devices that train at the same time without communication. Alone above expected: "
    "communication costs more than its collectives. Lost below alone: the backward pass hides the "
    "rest. Lost above alone: communication slows down the computation next to it, or devices wait "
    "for each other. Below zero: too small to measure.",
    columns=(
        *RESULT_COLUMNS,
        THROUGHPUT,
        *shared("unit", "devices"),
        STEP_TIME,
        WEAK.by_name["gradient_messages"],
        Column(
            "gradient_bytes", COUNT, "of all of them", "bytes", title="bytes",
        ),
        Column(
            "largest_message_bytes", COUNT, "of the largest of them", "bytes",
            title="largest message, bytes",
        ),
        _milliseconds(
            "expected_all_reduce", "sum of the all-reduces of these sizes, each measured alone",
            "expected",
        ),
        *_interval("expected_all_reduce", "that"),
        _milliseconds(
            "all_reduce_alone", "all-reduce of the gradients with nothing else running", "alone",
            flagged=True, figure=True,
        ),
        *_interval("all_reduce_alone", "that"),
        Column(
            "alone_over_expected", NUMBER, "the one over the other", title="alone / expected",
        ),
        *interval(
            "alone_over_expected", "that", title="interval",
            why=why_no_ratio_interval("alone_over_expected"),
        ),
        _milliseconds(
            "lost_to_communication", "what a step takes longer than one of the control", "lost",
            why=lambda row: ""
            if row["throughput_median"] is None
            else "no control (kind independent)",
        ),
        *_interval("lost_to_communication", "that",
                   why=why_no_interval("lost_to_communication_ms", confidence=losses.BOTH)),
        *shared("flags", "reason"),
    ),
    rows=lambda inputs: inputs.cases_with(
        partial(_cells, AllReduceLookup(inputs.others), inputs.others)
    ),
    group="Scaling",
    heading="Expected communication",
    sectioned=True,
    answers=("expected_all_reduce_ms", "all_reduce_alone_ms", "lost_to_communication_ms"),
    order="all_reduce_alone_ms",
    drawings=(Drawing("communication"),),
)  # fmt: skip
TABLES = (COMMUNICATION,)
