"""Judge whether the step time has settled during warm-up."""

from __future__ import annotations

from statistics import median
from typing import List, Optional, Sequence

#: Least number of steps for a judgement.
FEWEST = 10

#: Largest difference, as part of the step time, that counts as none.
TOLERANCE = 0.02


def is_settled(seconds: Sequence[float]) -> bool:
    """Return whether the last quarter of the steps takes as long as the quarter before.

    Each quarter has at least five steps. Their medians may differ by TOLERANCE, or by noise: the
    standard error of a difference of medians, from the median absolute deviation (0.67 standard
    deviations of normal noise; a median's standard error is 1.25 s / sqrt(n)). Medians ignore
    single stalls and late compilations; quarters show slow changes. A slow drift within the noise
    passes, but the timed region is judged by itself, with more steps."""
    if len(seconds) < FEWEST:
        return False
    count = max(FEWEST // 2, len(seconds) // 4)
    last, before = seconds[-count:], seconds[-2 * count : -count]
    middles = median(last), median(before)
    apart = [abs(s - m) for part, m in zip((last, before), middles) for s in part]
    noise: float = 1.25 * (median(apart) / 0.6745) * (2 / count) ** 0.5
    return abs(middles[0] - middles[1]) <= max(TOLERANCE * middles[0], noise)


def settled_after(seconds: List[float]) -> Optional[int]:
    """Return the number of steps after which the step time had first settled, or None."""
    counts = range(FEWEST, len(seconds) + 1)
    return next((count for count in counts if is_settled(seconds[:count])), None)
