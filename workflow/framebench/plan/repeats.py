"""How many repeats a case should have, by those that it has, and what is done in which."""

from __future__ import annotations

from collections.abc import Sequence

from core.case import Case

from ..config.kinds import INDEPENDENT
from ..config.repeats import Repeats
from ..config.suite import Suite
from ..records.run import Run
from ..statistics import descriptive


def wanted(runs: Sequence[Run], repeats: Repeats) -> int:
    """How many repeats a case should have, whose repeats so far are ``runs``.

    Until the interval is narrow enough, twice as many or as many as it seems to take, whichever is
    more. To look at it after every repeat, and to stop when it happens to be narrow, would be
    cheaper, but the interval that is left would cover the median too rarely; of a few looks, it
    keeps within 2 points of what it says (by simulation). The looks are at the first repeats, in
    the order of their numbers, so that they see the same after a kill. A case with a repeat that
    was not ok gets no more: they would not make it better.
    """
    ordered = sorted(runs, key=lambda run: run.repeat)
    count = repeats.at_least
    if repeats.width is None:
        return count
    from ..statistics import intervals  # here: most plans need no numpy

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


def is_split(case: Case, repeat: int, suite: Suite) -> bool:
    """Whether the parts of its steps are timed: in the first repeat, because what a step consists
    of does not change from repeat to repeat, and in all where a control makes a loss of the
    all-reduce, which takes an interval. Those of several micro-steps alternate, and of devices that
    share more than data all exchange something: they are not. Nor is any where the suite wants no
    breakdown of steps."""
    if not (suite.steps.breakdown and case.mode == "train" and case.is_plain):
        return False
    return repeat == 1 or (case.devices > 1 and INDEPENDENT in suite.measurements)
