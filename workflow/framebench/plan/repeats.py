"""Number of repeats of a case, and the repeats with a step breakdown."""

from __future__ import annotations

from collections.abc import Sequence

from core.case import Case

from ..config.kinds import INDEPENDENT
from ..config.repeats import Repeats
from ..config.suite import Suite
from ..records.run import Run
from ..statistics import descriptive


def wanted(runs: Sequence[Run], repeats: Repeats) -> int:
    """Return the number of repeats that a case should have; ``runs``: its repeats so far.

    Until the interval is narrow enough, the number doubles, or grows to the estimated need if that
    is more. Stopping at the first narrow interval would be cheaper, but such an interval covers the
    median too rarely. With a few looks, coverage stays within 2 points of nominal (by simulation).
    Each look uses the first repeats in order, so that a killed call decides alike. A case with a
    repeat that was not ok gets no more repeats.
    """
    ordered = sorted(runs, key=lambda run: run.repeat)
    count = repeats.at_least
    if repeats.width is None:
        return count
    from ..statistics import intervals  # imported here: most plans need no numpy

    if any(run.status != "ok" for run in ordered):
        return max(count, ordered[-1].repeat)
    while count < repeats.at_most and len(ordered) >= count:
        values = [run.figure for run in ordered[:count] if run.figure is not None]
        interval = intervals.median_interval(values)
        if interval and interval[1] - interval[0] <= repeats.width * abs(
            descriptive.median(values)
        ):
            break
        needed = intervals.repeats_for_width(values, repeats.width) or 0
        count = min(repeats.at_most, max(2 * count, needed))
    return count


def has_breakdown(case: Case, repeat: int, suite: Suite) -> bool:
    """Return whether a repeat measures the step breakdown, which a suite can turn off.

    The first repeat does, because the breakdown does not change between repeats. All repeats do if
    a control isolates the loss of the all-reduce, which needs an interval. Cases with micro-steps
    or with parallelism beyond data have no breakdown.
    """
    if not (suite.steps.breakdown and case.mode == "train" and case.is_plain):
        return False
    return repeat == 1 or (case.devices > 1 and INDEPENDENT in suite.measurements)
