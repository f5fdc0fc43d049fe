"""Table of the matmuls and convolutions of a step, timed alone, against the step time."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ..columns import NUMBER, PERCENT, RESULT_COLUMNS, THREE_DIGITS, Column, Row, shared
from ..expectation.alone import Alone, Operations
from ..results import CaseResult, flags_of
from ..table import Drawing, Table
from .communication import STEP_TIME, THROUGHPUT, step_milliseconds
from .efficiency import operations_per_sample

#: Least fraction of a step's operations that must be measured for a figure.
LEAST_COVERED = 0.9
#: Fraction above which more was measured than a step has.
_TOO_MUCH = 1.001
#: Most missing shapes that are named.
_NAMED = 12


def _cells(operations: Operations, models: Mapping[str, Any], result: CaseResult) -> Row | None:
    """Return the figures of a case whose matmuls or convolutions were or could be measured.

    1. covered: measured operations (see :mod:`..expectation.alone`) / model FLOPs of a step on a
       device.
    2. alone: their time, if covered is at least LEAST_COVERED.
    3. rest: step time - alone."""
    run = (result.ok or result.runs)[0]
    per_sample = operations_per_sample(run, models) if operations else None
    alone = operations.of_step(run, models[run.case.model]) if per_sample else None
    if not (per_sample and alone and (alone.results or alone.missing)):
        return None
    covered = alone.operations / (per_sample * run.case.samples_of_replica)
    step = step_milliseconds(result)
    taken = None
    if step is not None and LEAST_COVERED <= covered <= _TOO_MUCH:
        taken = 1000 * alone.seconds
    return {
        "covered": covered,
        "matmuls_alone_ms": taken,
        "matmul_share": taken / step if taken is not None and step else None,
        "rest_ms": step - taken if taken is not None and step else None,
        "flags": flags_of(result, *(alone.results if taken is not None else [])),
        "reason": _reason(result, alone, covered),
    }


def _reason(result: CaseResult, alone: Alone, covered: float) -> str:
    """Return why there is no figure, and what to measure; "" if there is one."""
    case = result.case
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    if covered > _TOO_MUCH:
        return f"{covered:.0%} of its operations were measured: more than the step has"
    if covered >= LEAST_COVERED:
        return ""
    text = f"{covered:.0%} of its operations were measured, {LEAST_COVERED:.0%} are needed"
    if not alone.missing:
        return f"{text}: its matmuls are not known by shape"
    more = len(alone.missing) - _NAMED
    return (
        f"{text}: kind matmul of {case.framework} in {case.precision}, devices_per_node "
        f"{case.devices_per_node}, shapes: {' '.join(map(str, alone.missing[:_NAMED]))}"
        + (f" and {more} more" if more > 0 else "")
    )


MATMUL_SHARE = Table(
    name="matmul_share",
    title="Products and convolutions of a step, alone",
    explanation="Times of a step's matmuls and convolutions, measured alone and added up, "
    "compared with the step. A micro-benchmark measured each in the same framework and precision "
    "on as many devices at once: matmuls by kind matmul at their shapes, other operations by "
    "kinds that take the model itself. Covered is the measured part of a step's operations. Below "
    f"{LEAST_COVERED:.0%} there is no figure, and the row names the missing shapes. The rest of a "
    "step contains all other operations, what is not covered, and what operations lose because "
    "their operands come from memory instead of a cache. A compiler may fuse operations, so the "
    "rest may be negative.",
    columns=(
        *RESULT_COLUMNS,
        THROUGHPUT,
        *shared("unit"),
        STEP_TIME,
        Column(
            "covered", NUMBER, "part of a step's operations that was measured alone",
            title="covered %", form=PERCENT,
        ),
        Column(
            "matmuls_alone_ms", NUMBER, "sum of what those that were measured take alone", "ms",
            title="alone ms", form=THREE_DIGITS, flagged=True, figure=True,
        ),
        Column(
            "matmul_share", NUMBER, "that over the step", title="of the step %", form=PERCENT,
        ),
        Column(
            "rest_ms", NUMBER, "the step without that", "ms", title="rest ms", form=THREE_DIGITS,
        ),
        *shared("flags", "reason"),
    ),
    rows=lambda inputs: inputs.cases_with(
        partial(_cells, Operations(inputs.others), inputs.models)
    ),
    group="Where the time goes",
    heading="Operations alone",
    sectioned=True,
    answers=("matmul_share", "matmuls_alone_ms", "rest_ms", "covered"),
    order="matmul_share",
    drawings=(Drawing("matmul_share"),),
)  # fmt: skip
TABLES = (MATMUL_SHARE,)
