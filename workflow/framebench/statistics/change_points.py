"""Detect shifts of the level in a series of figures.

Welch's statistic of a step, which allows noise of different size on both levels, is computed at
every possible position; the largest counts. Its null distribution is simulated for first-order
autoregressive normal noise that is NOISE_FACTOR times as large at one end, with a correlation a
standard error above the estimate (a test that assumes independent noise reports shifts where there
are none: Lund et al.; Robbins et al.). Both sides of a shift are tested again (binary segmentation,
Scott & Knott). A drift is reported as shifts where it is steep, or not at all.

Sources:

- Lund, Wang, Lu, Reeves, Gallagher & Feng, "Changepoint Detection in Periodic and Autocorrelated
  Time Series", *Journal of Climate* 20, 2007.
- Robbins, Gallagher, Lund & Aue, "Mean Shift Testing in Correlated Data", *Journal of Time Series
  Analysis* 32, 2011.
- Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
  Involved", *Biometrika* 34, 1947.
- Scott & Knott, "A Cluster Analysis Method for Grouping Means in the Analysis of Variance",
  *Biometrics* 30, 1974.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: False-positive rate: fraction of unchanged series in which a shift is reported.
LEVEL = 0.05
#: Smallest number of points in a series, and on either side of a shift.
FEWEST, MIN_SEGMENT = 10, 3
#: Number of latest points that are tested; the cost of the test grows with it.
MOST = 250
#: Noise for which the statistic is calibrated: NOISE_FACTOR times as large in the last 1 / LAST of
#: the points, at least MIN_SEGMENT. Equal noise has smaller statistics.
NOISE_FACTOR, LAST = 5, 5
#: Smallest number of draws of a simulation.
DRAWS = 4000
_CHUNK = 250  # series simulated at a time: as many as fit into the processor's cache

Series = NDArray[np.float64]


class ChangePoint(NamedTuple):
    """A shift of the level of the points from ``start`` to ``end`` (exclusive) of a series.
    ``at``: first point of the new level. ``p_value``: probability of so clear a shift in an
    unchanged series."""

    start: int
    at: int
    end: int
    p_value: float


def changes(values: Sequence[float], series: int = 1) -> list[ChangePoint]:
    """Return the level shifts in the logarithms of the latest MOST of ``values``, in order.

    ``values``: positive. ``series``: number of series that are tested together; with probability
    1 - LEVEL no unchanged series among them is reported."""
    logarithms = np.log(np.asarray(values, dtype=float))
    return _within(logarithms, max(0, len(values) - MOST), len(values), LEVEL / series)


def _within(values: Series, start: int, end: int, level: float) -> list[ChangePoint]:
    part = values[start:end]
    if len(part) < FEWEST or np.ptp(part) < 1e-9:
        return []
    draws = max(DRAWS, math.ceil(5 / level))
    drawn = without_change(len(part), _correlation(part), draws)
    above = draws - int(np.searchsorted(drawn, squares_of_step(part[np.newaxis]).max()))
    p_value = (above + 1) / (draws + 1)
    if p_value > level:
        return []
    at = start + _step(part, [])[0]
    shift = ChangePoint(start, at, end, p_value)
    return [*_within(values, start, at, level), shift, *_within(values, at, end, level)]


def _step(values: Series, others: list[int]) -> tuple[int, Series]:
    """Return the position of one more step, in addition to steps at ``others``, that fits best, and
    the residuals of that fit."""
    places = [at for at in range(MIN_SEGMENT, len(values) - MIN_SEGMENT + 1) if at not in others]
    parts = [(at, np.split(values, sorted([*others, at]))) for at in places]
    fits = [(at, np.concatenate([part - part.mean() for part in some])) for at, some in parts]
    return min(fits, key=lambda fit: float(np.sum(fit[1] ** 2)))


def _correlation(values: Series) -> float:
    """Return the correlation of neighbours plus a standard error, at most 0.9, in tenths.

    It is estimated from the residuals of one step. With enough points, the estimate with two steps
    counts if it is lower, because a second step would otherwise look like correlated noise."""
    at, residuals = _step(values, [])
    largest = _largest_correlation(residuals, 2)
    if len(values) >= 2 * FEWEST:
        largest = min(largest, _largest_correlation(_step(values, [at])[1], 3))
    return min(9, round(10 * largest)) / 10


def _largest_correlation(residuals: Series, fitted: int) -> float:
    """Return the first-order autocorrelation of residuals plus a standard error, corrected for the
    bias of ``fitted`` parameters. The error also holds for noise of changing size."""
    count, products = len(residuals), residuals[1:] * residuals[:-1]
    squares = max(float(np.sum(residuals**2)), 1e-300)
    corrected = (count * float(np.sum(products)) / squares + fitted) / (count - fitted)
    return min(max(corrected, 0.0), 0.9) + math.sqrt(float(np.sum(products**2))) / squares


def squares_of_step(values: Series) -> Series:
    """Return Welch's squared statistic of a step at each point of each row.

    The shorter side's variance counts as at least that of the longer one: three points may agree by
    chance. It is 0 where fewer than MIN_SEGMENT points lie on one side."""
    points = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    before = np.arange(MIN_SEGMENT, points - MIN_SEGMENT + 1)
    after = points - before
    sums, squares = (np.cumsum(part, axis=1)[:, before - 1] for part in (centred, centred**2))
    all_squares = np.sum(centred**2, axis=1, keepdims=True)
    of_before = (squares - sums**2 / before) / (before - 1)
    of_after = (all_squares - squares - sums**2 / after) / (after - 1)
    larger = np.maximum(of_before, of_after)
    of_before = np.where(before < after, larger, of_before) / before
    of_after = np.where(after < before, larger, of_after) / after
    result = np.zeros_like(values)
    result[:, before] = (sums / before + sums / after) ** 2 / np.maximum(
        of_before + of_after, 1e-300
    )
    return result


@lru_cache(maxsize=256)
def without_change(points: int, correlation: float, draws: int) -> Series:
    """Return the sorted largest statistics of ``draws`` simulated series without a change.
    The statistic does not depend on level or size of the noise."""
    random = np.random.default_rng(points)
    loud = np.ones(points)
    loud[points - max(MIN_SEGMENT, points // LAST) :] = NOISE_FACTOR
    found = [
        squares_of_step(loud * noise(random, min(_CHUNK, draws - first), points, correlation))
        for first in range(0, draws, _CHUNK)
    ]
    return np.sort(np.concatenate([squares.max(axis=1) for squares in found]))


def noise(random: np.random.Generator, series: int, points: int, correlation: float) -> Series:
    """Draw first-order autoregressive normal noise of variance 1, shape (series, points)."""
    drawn = random.normal(0.0, 1.0, (series, points))
    for point in range(1, points):
        own = math.sqrt(1 - correlation**2) * drawn[:, point]
        drawn[:, point] = correlation * drawn[:, point - 1] + own
    return drawn
