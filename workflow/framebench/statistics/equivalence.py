"""Test whether two means are equal within a margin.

Equivalence must be shown: a difference that was not detected proves nothing with few values.

Two one-sided tests (Schuirmann): that the difference lies above the lower end of the margin, and
that it lies below the upper one. Both reject at 5 % exactly where the 90 % interval of the
difference lies within the margin. Each is Welch's t-test, which assumes independent values of about
normal distribution, whose spreads may differ; scores on the same few hundred samples are discrete
and skewed near 1, for which ``tests/framebench/statistics/test_equivalence.py`` holds what is
promised.

A claim about one pair is wrong in at most 5 % of cases. That several pairs are all the same needs
no adjustment for their number (Berger); that one picked out of many is, would.

Sources:
- Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach", *Journal
  of Pharmacokinetics and Biopharmaceutics* 15, 1987.
- Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
  Involved", *Biometrika* 34, 1947.
- Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", *Technometrics* 24, 1982.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from . import descriptive

LEVEL = 0.05
SAME, ANOTHER, CANNOT_TELL = "same within the margin", "apart by more", "cannot tell"

Interval = tuple[float, float]


class Difference(NamedTuple):
    """Mean of the second minus mean of the first, its 90 % interval, and what that says."""

    mean: float
    interval: Interval
    verdict: str


def deviation(values: Sequence[float]) -> float | None:
    """Standard deviation of the population that ``values`` are from (n - 1); None for fewer than
    two."""
    if len(values) < 2:
        return None
    middle = descriptive.mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Student's interval of the mean, for values of about normal distribution; None for fewer than
    two, and where all are the same: there is no spread to judge by."""
    spread = deviation(values)
    if not spread:
        return None
    half = _quantile(confidence, len(values) - 1) * spread / math.sqrt(len(values))
    middle = descriptive.mean(values)
    return middle - half, middle + half


def compare(first: Sequence[float], second: Sequence[float], margin: float) -> Difference | None:
    """SAME where the 90 % interval lies within ``margin`` on either side of 0, ANOTHER where it
    lies outside, else CANNOT_TELL. None for fewer than two values on a side, and where no value
    differs from another on its side: there is no spread to judge by.

    Degrees of freedom as Welch and Satterthwaite have them."""
    spreads = deviation(first), deviation(second)
    if None in spreads or not any(spreads):
        return None
    parts = [
        (spread or 0.0) ** 2 / len(values)
        for spread, values in zip(spreads, (first, second), strict=True)
    ]
    below = sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True)
    )
    freedom = sum(parts) ** 2 / below
    mean = descriptive.mean(second) - descriptive.mean(first)
    half = _quantile(1 - 2 * LEVEL, freedom) * math.sqrt(sum(parts))
    low, high = mean - half, mean + half
    verdict = CANNOT_TELL
    if -margin < low and high < margin:
        verdict = SAME
    elif low > margin or high < -margin:
        verdict = ANOTHER
    return Difference(mean, (low, high), verdict)


def _quantile(confidence: float, freedom: float) -> float:
    """Return the quantile of Student's distribution for a two-sided interval."""
    from scipy import stats  # here: it takes seconds to import

    return float(stats.t.ppf((1 + confidence) / 2, freedom))
