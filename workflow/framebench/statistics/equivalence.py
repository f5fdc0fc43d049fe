"""Test whether two means are equal within a margin.

Equivalence must be shown: with few values, an undetected difference proves nothing.

Two one-sided tests (Schuirmann): the difference lies above the lower end of the margin, and below
the upper one. Both reject at 5 % exactly where the 90 % interval of the difference lies within the
margin. Each is Welch's t-test, which assumes independent, roughly normal values; their spreads may
differ. Scores on the same few hundred samples are discrete and skewed near 1; for these,
``tests/framebench/statistics/test_equivalence.py`` checks the promised error rates.

A claim about one pair is wrong in at most 5 % of cases. The claim that several pairs are all equal
needs no adjustment for their number (Berger); a claim about one pair picked out of many does.

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
    """Mean of the second sample minus mean of the first, its 90 % interval, and the verdict."""

    mean: float
    interval: Interval
    verdict: str


def deviation(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation (n - 1); None for fewer than two values."""
    if len(values) < 2:
        return None
    middle = descriptive.mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Return Student's 95 % interval of the mean, for roughly normal values.
    None for fewer than two values or if all are equal, since there is no spread to judge by."""
    spread = deviation(values)
    if not spread:
        return None
    half = _quantile(0.95, len(values) - 1) * spread / math.sqrt(len(values))
    middle = descriptive.mean(values)
    return middle - half, middle + half


def compare(first: Sequence[float], second: Sequence[float], margin: float) -> Difference | None:
    """Test whether two means are equal within ``margin``.
    SAME: the 90 % interval lies within the margin. ANOTHER: it lies outside. CANNOT_TELL: neither.
    None for fewer than two values on a side, and if both sides have no spread. Degrees of freedom
    after Welch and Satterthwaite."""
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
    from scipy import stats  # here: slow to import

    return float(stats.t.ppf((1 + confidence) / 2, freedom))
