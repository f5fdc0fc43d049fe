"""Table of the step breakdown of training: time per part."""

from __future__ import annotations

from collections import defaultdict

from ...records.fields.steps import PARTS
from ...statistics import descriptive
from ..columns import Row
from ..results import CaseResult
from ..table import declared_table

#: Value for records that do not tell.
UNKNOWN_END = "not recorded"


def _cells(result: CaseResult) -> Row | None:
    """Return medians over successful repeats with a breakdown; None unless trained."""
    if result.case.mode != "train":
        return None
    with_parts = [
        (run, run.step_breakdown)
        for run in result.ok
        if run.step_breakdown and run.step_breakdown.seconds
    ]
    steps = [descriptive.median(run.waited_seconds) for run, _ in with_parts if run.waited_seconds]
    samples: dict[str, list[float]] = defaultdict(list)
    for _, parts in with_parts:
        for name, number in parts.seconds:
            # merged parts count in the column of the first; `how` has the full name
            samples[name.partition("+")[0]].append(number)
    seconds = {name: descriptive.median(some) for name, some in samples.items()}
    total = sum(seconds.values())
    step = descriptive.median(steps) if steps else None
    ends = dict.fromkeys(parts.forward_ends or UNKNOWN_END for _, parts in with_parts)
    cells: dict[str, float | None] = {}
    for part in PARTS:
        value = seconds.get(part)
        cells[f"{part}_ms"] = None if value is None else 1000 * value
        cells[f"{part}_share"] = None if value is None else value / total
    return {
        "step_ms": None if step is None else 1000 * step,
        **cells,
        "sum_over_step": total / step if step else None,
        "forward_ends": ", ".join(ends),
        "breakdown_steps": sum(parts.steps for _, parts in with_parts),
        "how": "; ".join(dict.fromkeys(parts.how for _, parts in with_parts)),
        "reason": "" if with_parts else _reason(result),
    }


def _reason(result: CaseResult) -> str:
    if result.throughput is None:
        return f"{result.status}: {result.reason}"
    reasons = [
        run.step_breakdown.reason
        for run in result.ok
        if run.step_breakdown and run.step_breakdown.reason
    ]
    return reasons[0] if reasons else "no step breakdown in these records"


STEP_BREAKDOWN = declared_table("step_breakdown", lambda inputs: inputs.cases_with(_cells))
TABLES = (STEP_BREAKDOWN,)
