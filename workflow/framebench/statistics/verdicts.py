"""What a ratio of two cases is called. One rule for a comparison of two sets and for the ratios
within a table, each of which is a family: of many ratios some differ from 1 by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy takes its time, and a plan makes no verdicts
    from .intervals import Interval

LEVEL = 0.05  # of all differences called in a family, this part is false on average
THRESHOLD = 0.05  # a difference that must be excluded before none is said to be shown
FASTER, SLOWER = "faster", "slower"
NO_DIFFERENCE, CANNOT_TELL = "no difference shown", "cannot tell"
#: What a figure of a node is held against.
OTHERS, BASELINE = "others", "baseline"
SIDES = (OTHERS, BASELINE)
#: The chance that of a set of nodes, all of which are healthy, one is called slower.
FALSE_ALARMS = 0.05


def verdict(
    ratio: float, interval: Interval, p_adjusted: float, threshold: float = THRESHOLD
) -> str:
    """FASTER or SLOWER where the p-value, adjusted for the family (:func:`intervals.adjusted`), is
    at most LEVEL; else NO_DIFFERENCE where the interval, which is that of one ratio and not
    adjusted, excludes every difference above ``threshold``; else CANNOT_TELL."""
    if p_adjusted <= LEVEL:
        return FASTER if ratio > 1 else SLOWER
    low, high = interval
    return NO_DIFFERENCE if low > 1 - threshold and high < 1 + threshold else CANNOT_TELL
