"""Shape of the repeats of a case: spread, outliers, two modes. Outliers are reported, never
dropped.

Sources named below:

- Iglewicz & Hoaglin, *How to Detect and Handle Outliers*, ASQC, 1993 (modified z-scores).
- Engelman & Hartigan, "Percentage Points of a Test for Clusters", *JASA* 64, 1969.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

#: Smallest relevant difference, as a fraction of the median, of an outlier or between two modes.
RELEVANT = 0.025
#: Fraction of sets of normal repeats in which an outlier is reported, and in which two modes are.
SIGNIFICANCE = 0.01
FEWEST = 6
DRAWS = 50_000


def spread(values: Sequence[float]) -> float | None:
    """Return (maximum - minimum) / median, the noise as DLPerf defines it.
    None for fewer than two values, and for a median of 0."""
    middle = abs(float(np.median(values))) if len(values) > 1 else 0.0
    return (max(values) - min(values)) / middle if middle else None


def outliers(values: Sequence[float]) -> list[int]:
    """Return the positions of outliers.
    An outlier is farther from the median than RELEVANT of it. Its distance in median absolute
    deviations also exceeds that of the farthest value in all but SIGNIFICANCE of normal samples of
    that size. This is the modified z-score of Iglewicz & Hoaglin; their limit of 3.5 would report
    one in every fifteenth set. None are reported among fewer than FEWEST values, or where there are
    two modes (:func:`modes`)."""
    if len(values) < FEWEST or modes(values):
        return []
    numbers = np.asarray(values, dtype=float)
    middle = float(np.median(numbers))
    apart = np.abs(numbers - middle)
    limit = max(_farthest(len(numbers)) * float(np.median(apart)), RELEVANT * abs(middle))
    return [int(index) for index in np.flatnonzero(apart > limit)]


def modes(values: Sequence[float]) -> tuple[list[float], list[float]] | None:
    """Return the sorted values of the lower and the upper mode, each at least two.
    None for one mode, or for fewer than FEWEST values.

    The sorted values are cut where the least variance remains within the parts (Engelman &
    Hartigan). There are two modes if less remains than in all but SIGNIFICANCE of normal samples of
    that size, and the medians of both differ by RELEVANT of the median of all. Skewed repeats with
    one mode are said to have two a few times as often.
    """
    if len(values) < FEWEST:
        return None
    ordered = np.sort(np.asarray(values, dtype=float))
    left, cut = _least_left(ordered[None, :])
    lower, upper = ordered[: int(cut[0])], ordered[int(cut[0]) :]
    apart = float(np.median(upper) - np.median(lower))
    if apart < RELEVANT * abs(float(np.median(ordered))) or float(left[0]) >= _least(len(ordered)):
        return None
    return lower.tolist(), upper.tolist()


def _normal(count: int) -> np.ndarray:
    return np.random.default_rng(count).normal(size=(DRAWS, count))


@cache
def _farthest(count: int) -> float:
    """Return the median absolute deviations that the farthest of ``count`` normal values rarely
    exceeds."""
    draws = _normal(count)
    apart = np.abs(draws - np.median(draws, axis=1, keepdims=True))
    return float(np.quantile(apart.max(axis=1) / np.median(apart, axis=1), 1 - SIGNIFICANCE))


@cache
def _least(count: int) -> float:
    """Return the fraction of variance below which the best cut of normal values rarely falls."""
    left, _ = _least_left(np.sort(_normal(count), axis=1))
    return float(np.quantile(left, SIGNIFICANCE))


def _least_left(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest within-part fraction of variance over all cuts of each sorted row, and
    the number of values below that cut."""
    count = rows.shape[1]
    centred = rows - rows.mean(axis=1, keepdims=True)
    total = (centred**2).sum(axis=1)
    sizes = np.arange(2, count - 1)
    # For a lower part with n values and sum S and an upper part with sum -S, the means explain S^2
    # / n + S^2 / (count - n) of the total sum of squares.
    sums = np.cumsum(centred, axis=1)[:, 1:-2]
    between = sums**2 * (1 / sizes + 1 / (count - sizes))
    best = between.argmax(axis=1)
    taken = between[np.arange(len(rows)), best]
    left = np.where(total > 0, 1 - taken / np.where(total > 0, total, 1), 1.0)
    return left, sizes[best]
