"""Whether the step time has settled, judged while a run warms up."""

from __future__ import annotations

from statistics import median
from typing import List, Optional, Sequence

#: With fewer steps nothing is said.
FEWEST = 10

#: A difference below this part of the step time is none.
TOLERANCE = 0.02


def is_settled(seconds: Sequence[float]) -> bool:
    """Whether the last quarter of the steps takes as long as the quarter before it (but at least
    five steps each): their medians differ by less than TOLERANCE, or than the noise explains.

    Noise: the standard error of a difference of medians, from the median absolute deviation (for
    normal noise 0.67 standard deviations; a median's standard error is 1.25 s / sqrt(n)). Medians,
    because a stall or a late compilation is over with its step; quarters, because what changes
    slowly shows over a long stretch only. A slow drift within the noise passes: the timed window is
    judged by itself, with more steps.
    """
    if len(seconds) < FEWEST:
        return False
    count = max(FEWEST // 2, len(seconds) // 4)
    last, before = seconds[-count:], seconds[-2 * count : -count]
    middles = median(last), median(before)
    apart = [abs(s - m) for part, m in zip((last, before), middles) for s in part]
    noise: float = 1.25 * (median(apart) / 0.6745) * (2 / count) ** 0.5
    return abs(middles[0] - middles[1]) <= max(TOLERANCE * middles[0], noise)


def settled_after(seconds: List[float]) -> Optional[int]:
    """The number of steps after which the step time had first settled; None if it never had."""
    counts = range(FEWEST, len(seconds) + 1)
    return next((count for count in counts if is_settled(seconds[:count])), None)
