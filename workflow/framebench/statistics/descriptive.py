"""Statistics as pure functions over raw samples. Values that the samples cannot determine are None,
never 0.

Sources named below:

- David & Nagaraja, *Order Statistics*, 3rd ed., 2003, section 7.1.
- Hyndman & Fan, "Sample Quantiles in Statistical Packages", *The American Statistician* 50(4), 1996
  (definitions of the percentile).
- MLCommons, *MLPerf Inference Rules*, appendix on early stopping (samples that a percentile needs).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import fmean, stdev
from statistics import median as median

#: Arithmetic mean, summed without rounding error: for times, which add up, not for rates.
mean = fmean
#: Confidence in :func:`samples_needed` that samples lie above a percentile, as in MLPerf.
CONFIDENCE = 0.99


def percentile(values: Sequence[float], fraction: float) -> float | None:
    """Return the nearest-rank percentile: the smallest value with at least `fraction` of all at or
    below it.

    Definition 1 of Hyndman & Fan (the inverse of the empirical distribution function), because its
    result is a latency that occurred; it never lies between two modes. In the unit of `values`.
    None with fewer than `samples_needed(fraction)` values.
    """
    if len(values) < samples_needed(fraction):
        return None
    rank = math.ceil(Fraction(str(fraction)) * len(values))  # exact, because a float may round up
    return sorted(values)[rank - 1]


@lru_cache
def samples_needed(fraction: float) -> int:
    """Return the fewest independent samples for a percentile: 11 for 0.5, 64 for 0.9, 662 for 0.99.

    It is 130 for 0.95 and 6,636 for 0.999. With this many samples, the second largest is above the
    true percentile with CONFIDENCE, so that a single stall does not change the result. Of n samples
    the number above the percentile is Binomial(n, 1 - fraction); it is below two in at most 1 -
    CONFIDENCE of all cases (David & Nagaraja). 64 and 662 are also the least numbers of queries of
    MLPerf's early stopping. The printed percentile is an estimate, not a bound.
    """
    above = float(1 - Fraction(str(fraction)))
    count = 2
    while (1 - above) ** (count - 1) * (1 - above + count * above) > 1 - CONFIDENCE:
        count += 1
    return count


def deviation(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n - 1); None for fewer than two values."""
    return stdev(values) if len(values) > 1 else None


def spread(values: Sequence[float]) -> float | None:
    """Return (maximum - minimum) / median, the noise as DLPerf defines it.

    None for fewer than two values, and for a median of 0."""
    middle = abs(median(values)) if len(values) > 1 else 0.0
    return (max(values) - min(values)) / middle if middle else None


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Student's 95 % interval of the mean, for roughly normal values.

    None for fewer than two values or if all are equal, since there is no spread to judge by."""
    from scipy import stats  # slow to import

    spread = deviation(values)
    if not spread:
        return None
    half = float(stats.t.ppf(0.975, len(values) - 1)) * spread / math.sqrt(len(values))
    return mean(values) - half, mean(values) + half
