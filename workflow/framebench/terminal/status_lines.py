"""Terminal lines: a result, and the progress of a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.text import duration

from ..cases.conditions import THROUGHPUT
from ..plan.forecast import time_left
from ..tables.formatting import figure
from .nouns import NOUNS, count_of
from .outcome import RunOutcome


def result(position: str, label: str, outcome: RunOutcome, seconds: float) -> str:
    """Return a result line: ``12/84 pytorch resnet50 train fp32 1n2g r1 6.82 images/s 8 s``.
    Status and reason replace a missing figure."""
    what = (
        f"{outcome.status}: {' '.join(outcome.reason.split())}"
        if outcome.reason
        else outcome.status
    )
    if outcome.figure is not None:
        name = "" if outcome.metric == THROUGHPUT else f"{outcome.metric} "
        what = f"{name}{figure(outcome.figure)} {outcome.unit}"
    return " ".join(filter(None, [position, label, what, duration(seconds)]))


def status(
    done: Mapping[str, int],
    total: Mapping[str, int],
    failed: int,
    running: Sequence[str],
    left: float,
    width: int = 0,
) -> str:
    """Return the status line: jobs done, failed and running, and the time left.
    ``done``, ``total``: jobs by kind. ``width``: columns to fit into, 0 for no limit; the time left
    is never cut."""
    counts = [
        count_of(total[kind], kind, done.get(kind, 0))
        for kind in NOUNS
        if kind == "run" or done.get(kind, 0) < total.get(kind, 0) > (kind == "tables")
    ]
    counts[1:1] = [f"{failed} failed"] if failed else []
    end = f"{time_left(left)} left"
    now = running[0] if running else ""
    now += f" and {len(running) - 1} more" if len(running) > 1 else ""
    text = ", ".join(counts)
    if not width:
        return "; ".join(filter(None, [text, now, end]))
    room = width - len(end)
    while counts[1 + bool(failed) :] and len(", ".join(counts)) + 2 > room / 2:
        counts.pop()
    text = ", ".join(counts)
    rest = room - len(text) - 4
    now = now if len(now) <= rest else f"{now[: max(rest - 2, 0)]}.."
    return "; ".join(filter(None, [text, now if rest > 8 else "", end]))[:width]
