"""Output of a bisection: a table of the tested versions, and a note."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from ....tables import frames
from ....tables.columns import (
    COUNT,
    NUMBER,
    TEXT,
    THOUSANDTHS,
    WHOLE,
    Column,
    Form,
    interval,
    interval_cells,
)
from ....tables.formatting import escape
from ....tables.table import Table
from .search import CHANGED, OPEN, SKIPPED, UNCHANGED, BisectState, BisectStep

#: Exit statuses besides 4 (broken).
FOUND, NOTHING, UNDECIDED = 0, 1, 3

TABLE = Table(
    name="bisect",
    title="Bisection",
    explanation="Each version that was looked at over the good one, in pairs; above 1 is better.",
    columns=(
        Column("version", TEXT, "of the package or model, or the change"),
        Column(
            "verdict", TEXT,
            "`changed` by more than the margin, `not changed`, `cannot tell`, or `skipped`",
            form=Form(
                looks={
                    CHANGED: "failed",
                    UNCHANGED: "ok",
                    OPEN: "unsupported",
                    SKIPPED: "unsupported",
                }
            ),
        ),
        Column("ratio", NUMBER, "over the good version", form=THOUSANDTHS),
        *interval("ratio", "the ratio", form=THOUSANDTHS),
        Column("pairs", WHOLE, "pairs that were compared; 0 where each side was a set"),
        Column(
            "pairs_needed", COUNT, "of a version of which it cannot be told: pairs in all that "
            "decide it with a chance of 80 %, if the ratio is what it seems to be",
        ),
        Column("moved", TEXT, "other packages whose version differs from the good one", note=True),
        Column("reason", TEXT, "why a version was skipped, or cannot be told", note=True),
    ),
    keys=("version",),
    axes=(),
    empty="No version was looked at.",
)  # fmt: skip


@dataclass(frozen=True)
class BisectRequest:
    """Request of a bisection. ``margin``: a fraction; ``between``: the margin by which versions
    between the good and the bad one are judged, 0 until it is known."""

    subject: str
    good: str
    bad: str
    case: str
    margin: float
    between: float = 0.0


def frame(steps: Sequence[BisectStep]) -> pd.DataFrame:
    """Return a table row for each step, in the order of measurement."""
    rows = [
        {
            "version": step.version,
            "verdict": step.state,
            "ratio": step.ratio,
            **interval_cells("ratio", step.interval),
            "pairs": step.pairs,
            "pairs_needed": step.needed,
            "moved": step.moved,
            "reason": step.reason,
        }
        for step in steps
    ]
    return frames.frame(TABLE, rows)


def line(step: BisectStep) -> str:
    """Return a step as text: ``2.12.1: changed: 0.930 [0.912, 0.951], 12 pairs``."""
    parts = [f"{step.version}: {step.state}"]
    figures = [ratio(step)] if step.ratio is not None else []
    figures += [f"{step.pairs} pairs"] if step.pairs else []
    parts += [", ".join(figures)] if figures else []
    parts += [step.reason] if step.reason else []
    text = ": ".join(parts)
    return f"{text} (with {step.moved})" if step.moved else text


def ratio(step: BisectStep) -> str:
    text = f"{step.ratio:.3f}"
    return f"{text} [{step.interval[0]:.3f}, {step.interval[1]:.3f}]" if step.interval else text


def status(state: BisectState) -> int:
    """Return the exit status of a bisection without faults."""
    if state.open or state.following or state.skipped:
        return UNDECIDED
    return FOUND if state.changed else NOTHING


def ending(
    state: BisectState, steps: Mapping[str, BisectStep], request: BisectRequest
) -> list[str]:
    """Return the result of a bisection that has ended or needs more pairs, and what to do next."""
    margin = f"{request.margin:.1%}"
    if state.open:
        step = steps[state.open]
        lines = [f"cannot tell of {line(step)}"]
        if step.needed:
            return [*lines, f"The same command with --pairs {step.needed} goes on from here."]
        return [*lines, "Pairs alone may not do: choose another margin, or a longer window."]
    if not state.changed:
        step = steps[request.bad]
        if step.state == SKIPPED:
            return [f"{line(step)}: choose a bad version that runs."]
        return [f"not changed: {request.bad} is within {margin} of {request.good}: {ratio(step)}"]
    changed = steps[state.changed]
    if state.skipped:
        some = ", ".join(state.skipped)
        lines = [f"changed in {some} or {line(changed)}"]
        lines += [f"- {line(steps[version])}" for version in state.skipped]
    else:
        lines = [f"first changed in {line(changed)}"]
    if state.before == request.good:
        return [*lines, f"{state.before} before it is the good version."]
    return [*lines, f"{line(steps[state.before])}: the last version without the change."]


def note(lines: Sequence[str], steps: Sequence[BisectStep], request: BisectRequest) -> str:
    """Return a Markdown note."""
    subject, good, bad = (escape(text) for text in (request.subject, request.good, request.bad))
    head = f"**Framebench bisect: {subject} {good} to {bad}**, {escape(request.case)}, "
    head += f"margin {request.margin:.1%}"
    if request.between > request.margin:
        head += f", and {request.between:.1%} for versions between them"
    looked = [f"- {escape(line(step))}" for step in steps]
    return "\n".join([head, "", *map(escape, lines), "", "Looked at:", "", *looked]) + "\n"
