"""Table of the step breakdown of training: time per part."""

from __future__ import annotations

from collections import defaultdict

from ...records.fields.step_parts import PARTS
from ...statistics import descriptive
from ..columns import NUMBER, PERCENT, RESULT_COLUMNS, TENTHS, TEXT, WHOLE, Column, Row, shared
from ..results import CaseResult
from ..table import Table

#: Value of the column ``data``: samples are on the device before the timed region.
DATA = "none: on the device before the window"


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
        "data": DATA if with_parts else "",
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


_WORDS = {
    "forward": "forward pass",
    "backward": "backward pass",
    "all_reduce": "all-reduce of the gradients",
    "optimizer": "step of the optimizer",
}


def _milliseconds(part: str) -> Column:
    return Column(
        f"{part}_ms",
        NUMBER,
        f"time of the {_WORDS[part]}",
        "ms",
        title=f"{part.replace('_', '-')} ms (%)",
        form=TENTHS,
        share=f"{part}_share",
    )


def _share(part: str) -> Column:
    meaning = f"the {_WORDS[part]} over the sum of all parts"
    return Column(f"{part}_share", NUMBER, meaning, form=PERCENT)


STEP_BREAKDOWN = Table(
    name="step_breakdown",
    title="Parts of a training step",
    explanation="Milliseconds of the parts of a training step and, in brackets, their percentage "
    "of the sum. They are timed in further steps after the timed region, each part waited for, in "
    "the first repeat (in all repeats on several devices with a control). The timed region stays "
    "unchanged. A part that cannot be timed alone is the difference of two passes; it is negative "
    "if it is smaller than their noise. All-reduce is what it adds to the pass that it overlaps "
    "with. Frameworks end the forward pass at different points, which the row names: compare "
    "forward and backward passes only where these agree. Sum / step is the sum over the median "
    "step that was waited for: trust a breakdown if it is near one.",
    columns=(
        *RESULT_COLUMNS,
        Column(
            "step_ms", NUMBER, "median of the steps that were waited for", "ms", title="step ms",
            form=TENTHS, figure=True,
        ),
        Column("data", TEXT, "what of the input is part of the step", hoisted=True),
        *map(_milliseconds, PARTS),
        *map(_share, PARTS),
        Column(
            "sum_over_step", NUMBER, "sum of all parts over the median step", title="sum / step",
            flagged=True,
        ),
        Column(
            "forward_ends", TEXT,
            "with what the forward pass ends: the `loss`, or the `logits`, and then the backward "
            "pass has the loss in it",
        ),
        Column("breakdown_steps", WHOLE, "steps whose parts were timed", title="steps"),
        Column("how", TEXT, "how each part was timed", note=True),
        *shared("flags", "reason"),
    ),
    rows=lambda inputs: inputs.cases_with(_cells),
    group="Where the time goes",
    heading="Parts of a step",
    always=True,
    needs="step_ms",
    sectioned=True,
    answers=("step_ms", *(f"{part}_ms" for part in PARTS)),
    order="-step_ms",
)  # fmt: skip
TABLES = (STEP_BREAKDOWN,)
