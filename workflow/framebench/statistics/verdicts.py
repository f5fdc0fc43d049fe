"""Verdicts on the ratio of two cases, adjusted for all ratios of a comparison or table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy is slow to import, and a plan makes no verdicts
    from .intervals import Interval

LEVEL = 0.05  # false discovery rate of the differences called in a family
THRESHOLD = 0.05  # "no difference shown" excludes differences above this fraction
#: Probability that any wrong winner is named where a time budget decides the repeats.
FALSE_WINNERS = 0.05
#: Most pairs of a performance gate, and the pairs before its first decision.
PAIRS, FIRST_LOOK = 40, 8
FASTER, SLOWER = "faster", "slower"
NO_DIFFERENCE, CANNOT_TELL = "no difference shown", "cannot tell"
#: Sides that a figure of a node is compared with.
OTHERS, BASELINE = "others", "baseline"
#: Probability that some node of an all-healthy set is called slower.
FALSE_ALARMS = 0.05


def verdict(ratio: float, interval: Interval, p_adjusted: float) -> str:
    """Return the verdict on a ratio.

    FASTER or SLOWER: the p-value, adjusted for the family (:func:`intervals.adjusted`), is at most
    LEVEL, and the unadjusted interval excludes 1. The p-value alone may be small because both sides
    differ in spread or shape. NO_DIFFERENCE: the interval excludes differences above THRESHOLD.
    CANNOT_TELL: neither holds."""
    low, high = interval
    if p_adjusted <= LEVEL and not low <= 1 <= high:
        return FASTER if ratio > 1 else SLOWER
    return NO_DIFFERENCE if low > 1 - THRESHOLD and high < 1 + THRESHOLD else CANNOT_TELL
