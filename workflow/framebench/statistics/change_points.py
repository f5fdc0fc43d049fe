"""Detect changes in a series of figures: a test for a shift of its level.

The noise is a normal first-order autoregressive process; its correlation is estimated.

1. Welch's statistic of a step, which lets both levels have noise of their own size, is computed at
   every possible position; the largest counts. Its null distribution is simulated for noise that is
   NOISE_FACTOR times as large at one end, and for every correlation up to a standard error above
   the estimate; the least favourable one counts (a test that assumes independent noise reports
   changes where there are none: Lund et al.; Robbins et al.).
2. A change is a drift if a straight line fits better than two levels, else a jump.
3. Both sides of a jump are tested again (binary segmentation, Scott & Knott).

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

#: False-positive rate: fraction of unchanged series in which a change is reported.
LEVEL = 0.05
#: Smallest number of points in a series, and on either side of a change.
FEWEST, MIN_SEGMENT = 10, 3
#: Number of latest points that are tested; the cost of the test grows with it.
MOST = 250
JUMP, DRIFT = "jump", "drift"
#: Noise for which the statistic is calibrated: NOISE_FACTOR times as large in the last 1 / LAST of
#: the points, at least MIN_SEGMENT. Equal noise has smaller statistics.
NOISE_FACTOR, LAST = 5, 5
#: Smallest number of draws of a simulation.
DRAWS = 4000
_CORRELATIONS = tuple(step / 10 for step in range(10))
_CHUNK = 250  # series simulated at a time: as many as fit into the processor's cache

Series = NDArray[np.float64]


class ChangePoint(NamedTuple):
    """A jump or drift between the points ``start`` and ``end`` (exclusive) of a series.
    ``at``: first point of the new level; for a drift, first point of the series. ``p_value``:
    probability of so clear a change in an unchanged series."""

    kind: str
    start: int
    at: int
    end: int
    p_value: float


def changes(values: Sequence[float], series: int = 1) -> list[ChangePoint]:
    """Return the changes in the logarithms of the latest MOST of ``values``, in their order.

    ``values``: positive. ``series``: number of series that are tested together; with probability
    1 - LEVEL no unchanged series among them is reported."""
    logarithms = np.log(np.asarray(values, dtype=float))
    return _within(logarithms, max(0, len(values) - MOST), len(values), LEVEL / series)


def _within(values: Series, start: int, end: int, level: float) -> list[ChangePoint]:
    part = values[start:end]
    if len(part) < FEWEST or np.ptp(part) < 1e-9:
        return []
    p_value = _p_value(part, max(DRAWS, math.ceil(5 / level)))
    if p_value > level:
        return []
    at, levels = _step(part, [], line=False)
    if _squares(_rest(part, [], line=True)) < _squares(levels):
        return [ChangePoint(DRIFT, start, start, end, p_value)]
    before = _within(values, start, start + at, level)
    after = _within(values, start + at, end, level)
    return [*before, ChangePoint(JUMP, start, start + at, end, p_value), *after]


def _step(values: Series, others: list[int], line: bool) -> tuple[int, Series]:
    """Return the position of the step that fits best next to steps at ``others`` and, with
    ``line``, a slope, and the residuals of that fit."""
    places = [at for at in range(MIN_SEGMENT, len(values) - MIN_SEGMENT + 1) if at not in others]
    fits = ((at, _rest(values, [*others, at], line)) for at in places)
    return min(fits, key=lambda fit: _squares(fit[1]))


def _rest(values: Series, steps: list[int], line: bool) -> Series:
    """Return the residuals of a fit with ``steps`` and, with ``line``, a slope."""
    time = np.arange(len(values))
    columns = [np.ones(len(values)), *(time >= at for at in steps), *([time] if line else [])]
    design = np.stack(columns, axis=1).astype(float)
    rest: Series = values - design @ np.linalg.lstsq(design, values)[0]
    return rest


def _squares(values: Series) -> float:
    return float(np.sum(values**2))


def _p_value(values: Series, draws: int) -> float:
    """Return the largest p-value over all correlations that the series may have."""
    largest = float(squares_of_step(values[np.newaxis]).max())
    at, rest = _step(values, [], line=True)
    most = _largest_correlation(rest, 3)
    if len(values) >= 2 * FEWEST:  # a second jump would be taken for correlated noise
        most = min(most, _largest_correlation(_step(values, [at], line=True)[1], 4))
    drawn = [
        without_change(len(values), correlation, draws)
        for correlation in _CORRELATIONS
        if correlation <= most + 0.05
    ]
    above = max(len(sample) - int(np.searchsorted(sample, largest)) for sample in drawn)
    return (above + 1) / (len(drawn[0]) + 1)


def _largest_correlation(rest: Series, fitted: int) -> float:
    """Return a standard error above the first-order autocorrelation of residuals, corrected for the
    bias that comes from ``fitted`` parameters. The error holds for noise that changes its size."""
    products, squares = rest[1:] * rest[:-1], max(_squares(rest), 1e-300)
    lagged = float(np.sum(products)) / squares
    corrected = (len(rest) * lagged + fitted) / (len(rest) - fitted)
    return min(max(corrected, 0.0), 0.9) + math.sqrt(_squares(products)) / squares


def squares_of_step(values: Series) -> Series:
    """Return Welch's squared statistic of a step at each point of each row.

    The shorter side's variance counts as at least that of the longer one: three points that happen
    to agree are no quiet level. It is 0 where fewer than MIN_SEGMENT points lie on one side."""
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
