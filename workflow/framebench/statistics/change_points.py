"""Detect changes in a series of figures: jumps and drifts.

The noise is a normal first-order autoregressive process; its correlation is estimated.

1. The t-statistic of a step is computed by generalised least squares at every possible position;
   the largest counts (Lund et al.; Robbins et al.: a test that assumes independent noise reports
   changes where there are none). Its null distribution is simulated for every correlation that the
   series may have; the least favourable one counts.
2. The size of the noise may change, too. So the change must also show in Welch's statistic, whose
   null distribution is simulated for noise that is LOUDER at one end.
3. If steps 1 and 2 find a change, the test is repeated with a linear trend next to the step
   (Gallagher et al.). A linear trend does not change this statistic, so a slow drift is called a
   jump no more often than a constant level.
4. A jump must also fit better than a line with two bends (Muggeo), which follows drifts of any
   smooth course. If the bends fit better, it is a drift; else a jump or a drift.
5. If step 3 finds no jump: the change is two jumps where three levels fit better than a line, with
   and without bends, by an information criterion (Yao); a drift where a line fits better than two
   levels; else a jump or a drift, which the points cannot tell apart.
6. Both sides of a jump are tested again (binary segmentation, Scott & Knott).

Sources:

- Lund, Wang, Lu, Reeves, Gallagher & Feng, "Changepoint Detection in Periodic and Autocorrelated
  Time Series", *Journal of Climate* 20, 2007.
- Robbins, Gallagher, Lund & Aue, "Mean Shift Testing in Correlated Data", *Journal of Time Series
  Analysis* 32, 2011.
- Gallagher, Lund & Robbins, "Changepoint Detection in Climate Time Series with Long-Term Trends",
  *Journal of Climate* 26, 2013.
- Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances are
  Involved", *Biometrika* 34, 1947.
- White, "A Heteroskedasticity-Consistent Covariance Matrix Estimator and a Direct Test for
  Heteroskedasticity", *Econometrica* 48, 1980.
- Muggeo, "Estimating Regression Models with Unknown Break-Points", *Statistics in Medicine* 22,
  2003.
- Yao, "Estimating the Number of Change-Points via Schwarz' Criterion", *Statistics & Probability
  Letters* 6, 1988.
- Prais & Winsten, "Trend Estimators and Serial Correlation", Cowles Commission paper 383, 1954.
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
FEWEST, BESIDE = 10, 3
#: Number of latest points that are tested; the cost of the test grows with it.
MOST = 250
JUMP, DRIFT, EITHER = "jump", "drift", "jump or drift"
#: Gain that three levels must have over a line, in logarithms of the number of points. Schwarz's
#: criterion gives 3 for the extra parameters; 5 makes it rare to call a drift two jumps.
PRICE = 5
#: Gain that a jump must have over a line with bends, in the same unit; if bends gain as much, it is
#: a drift. A drift takes at least a part of 1 / GRADUAL of the points.
CLEARER, GRADUAL = 1, 4
#: Noise for which the statistic of unequal noise is calibrated: LOUDER times as large in the last
#: 1 / LAST of the points, at least BESIDE. Equal noise has smaller statistics.
LOUDER, LAST = 5, 5
#: Statistics of a step: with equal noise on both sides, with a line next to it, and with noise of
#: another size on either side.
STEP, STEP_AND_LINE, UNEQUAL = "step", "step and line", "unequal"
#: Standard errors above the estimated correlation up to which a series may be correlated. None for
#: UNEQUAL, which is calibrated for the least favourable noise: several jumps look like correlation.
ERRORS = {STEP: 2.0, STEP_AND_LINE: 2.0, UNEQUAL: 0.0}
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


class _Scan(NamedTuple):
    """Largest squared t-statistic of each series, its position, and the correlation with its
    standard error."""

    largest: Series
    at: NDArray[np.intp]
    correlation: Series
    error: Series


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
    draws = max(DRAWS, math.ceil(5 / level))
    stepped = scan(part[np.newaxis], STEP)
    p_value = _p_value(stepped, len(part), STEP, draws)
    if p_value > level:
        return []
    unequal = scan(part[np.newaxis], UNEQUAL)
    p_value = max(p_value, _p_value(unequal, len(part), UNEQUAL, draws))
    if p_value > level:
        return []
    beside = scan(part[np.newaxis], STEP_AND_LINE)
    smooth = _left_by_broken_line(part)
    if _p_value(beside, len(part), STEP_AND_LINE, DRAWS) <= LEVEL:
        at = int(beside.at[0])
        gain = _gain(part, smooth, _left_by_step_and_line(part, at), [at])
        if gain > CLEARER:
            before = _within(values, start, start + at, level)
            after = _within(values, start + at, end, level)
            return [*before, ChangePoint(JUMP, start, start + at, end, p_value), *after]
        kind = DRIFT if gain < -CLEARER else EITHER
        return [ChangePoint(kind, start, start + (at if kind == EITHER else 0), end, p_value)]
    line = _left_by_line(part)
    if stairs := _stairs(part, line, smooth):
        first, second = (start + at for at in stairs)
        before, after = _within(values, start, first, level), _within(values, second, end, level)
        both = [
            ChangePoint(JUMP, start, first, second, p_value),
            ChangePoint(JUMP, first, second, end, p_value),
        ]
        return [*before, *both, *after]
    if line < _left_by_step(part, int(stepped.at[0])):
        return [ChangePoint(DRIFT, start, start, end, p_value)]
    return [ChangePoint(EITHER, start, start + int(stepped.at[0]), end, p_value)]


def _left_by_line(values: Series) -> float:
    """Return the sum of squared residuals from the fitted line."""
    time = np.arange(len(values))
    return float(np.sum((values - np.polyval(np.polyfit(time, values, 1), time)) ** 2))


def _left_by_broken_line(values: Series) -> float:
    """Return the least sum of squared residuals from a line with at most two bends.
    The bends are a quarter of the points apart or more, and at most 24 places are tried."""
    points = len(values)
    places = np.unique(np.linspace(0, points - 1, min(points, 24)).round())
    first, second = (knots.ravel() for knots in np.meshgrid(places, places))
    apart = second - first >= max(BESIDE, points / GRADUAL)
    time = np.arange(points) / points
    bends = np.stack([first[apart], second[apart]], axis=1) / points
    bent = np.maximum(time[np.newaxis, :, np.newaxis] - bends[:, np.newaxis, :], 0.0)
    straight = np.broadcast_to(np.stack([np.ones(points), time], axis=1), (len(bends), points, 2))
    columns = np.linalg.qr(np.concatenate([straight, bent], axis=2))[0]
    explained = np.sum(np.einsum("kni,n->ki", columns, values) ** 2, axis=1)
    return float(np.sum(values**2) - explained.max())


def _left_by_step_and_line(values: Series, at: int) -> float:
    """Return the sum of squared residuals from a line with a step ``at``."""
    time = np.arange(len(values))
    columns = np.stack([np.ones(len(values)), time, time >= at], axis=1)
    return float(np.linalg.lstsq(columns, values)[1][0])


def _gain(values: Series, other: float, left: float, jumps: Sequence[int]) -> float:
    """Return how much better a fit with ``jumps`` is, in logarithms of the number of points.
    ``left`` and ``other``: sums of squares that it and another fit leave. Correlated points count
    as the smaller number of independent points that they are worth."""
    levels = np.split(values, jumps)
    rest = np.concatenate([level - level.mean() for level in levels])
    correlation = float(_corrected(rest[np.newaxis], len(levels))[0])
    worth = len(values) * (1 - correlation) / (1 + correlation)
    ratio = max(other, 1e-300) / max(left, 1e-300)
    return worth * math.log(ratio) / math.log(len(values))


def _stairs(values: Series, line: float, smooth: float) -> tuple[int, int] | None:
    """Return the positions of the two jumps of the best three-level fit.
    None if a line or a line with bends fits as well: they leave the sums of squares ``line`` and
    ``smooth``."""
    points = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])

    def left(first: int, behind: int) -> float:
        total = float(sums[behind] - sums[first])
        return float(squares[behind] - squares[first]) - total**2 / (behind - first)

    found = [
        (left(0, first) + left(first, second) + left(second, points), first, second)
        for first in range(BESIDE, points - 2 * BESIDE + 1)
        for second in range(first + BESIDE, points - BESIDE + 1)
    ]
    least, first, second = min(found)
    gains = [_gain(values, other, least, [first, second]) for other in (line, smooth)]
    return (first, second) if gains[0] > PRICE and gains[1] > CLEARER else None


def _left_by_step(values: Series, at: int) -> float:
    """Return the sum of squares within two levels, split before ``at``."""
    return float(sum(np.sum((side - side.mean()) ** 2) for side in (values[:at], values[at:])))


def _p_value(scan: _Scan, points: int, statistic: str, draws: int) -> float:
    """Return the largest p-value over all correlations that the series may have."""
    most = float(scan.correlation[0] + ERRORS[statistic] * scan.error[0])
    possible = [correlation for correlation in _CORRELATIONS if correlation <= most + 0.05]
    return max(_tail(points, statistic, value, draws, float(scan.largest[0])) for value in possible)


def _tail(points: int, statistic: str, correlation: float, draws: int, value: float) -> float:
    drawn = without_change(points, statistic, correlation, draws)
    above = len(drawn) - int(np.searchsorted(drawn, value))
    return (above + 1) / (len(drawn) + 1)


@lru_cache(maxsize=256)
def without_change(points: int, statistic: str, correlation: float, draws: int) -> Series:
    """Return the sorted statistics of ``draws`` simulated series without a change.
    The statistic does not depend on level, slope or size of the noise."""
    random = np.random.default_rng(points)
    loud = np.ones(points)
    if statistic == UNEQUAL:
        loud[points - max(BESIDE, points // LAST) :] = LOUDER
    found = [
        scan(loud * noise(random, min(_CHUNK, draws - first), points, correlation), statistic)
        for first in range(0, draws, _CHUNK)
    ]
    return np.sort(np.concatenate([one.largest for one in found]))


def noise(random: np.random.Generator, series: int, points: int, correlation: float) -> Series:
    """Draw first-order autoregressive normal noise of variance 1, shape (series, points)."""
    drawn = random.normal(0.0, 1.0, (series, points))
    for point in range(1, points):
        own = math.sqrt(1 - correlation**2) * drawn[:, point]
        drawn[:, point] = correlation * drawn[:, point - 1] + own
    return drawn


def scan(values: Series, statistic: str) -> _Scan:
    """Scan each row of ``values`` with one of the statistics."""
    at = np.argmax(squares_of_step(values, True, np.zeros(len(values))), axis=1)
    correlation, error = _correlation(values, at)
    if statistic == UNEQUAL:
        squares = unequal_squares(values)
    else:
        squares = squares_of_step(values, statistic == STEP_AND_LINE, correlation)
    at = np.argmax(squares, axis=1)
    return _Scan(squares[np.arange(len(values)), at], at, correlation, error)


def unequal_squares(values: Series) -> Series:
    """Return Welch's squared statistic of a step at each point, for noise that changes its size.

    The shorter side's variance counts as at least that of the longer one: three points that happen
    to agree are no quiet level. It is 0 where fewer than BESIDE points lie on one side."""
    points = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    before = np.arange(BESIDE, points - BESIDE + 1)
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


def squares_of_step(values: Series, line: bool, correlation: Series) -> Series:
    """Return the squared t-statistic of a step at each point, per row with its ``correlation``.
    It is 0 where fewer than BESIDE points lie on one side."""
    points = values.shape[1]
    fitted = _fitted(points, line, correlation)
    left = _without(_unrelated(values, correlation), fitted)
    jump = 1 - correlation[:, np.newaxis]  # size of a unit step after its first point

    def with_step(column: Series) -> Series:
        """Return the product of each step with a column."""
        behind = np.cumsum(column[:, ::-1], axis=1)[:, ::-1] - column
        return column + jump * behind

    length = 1 + jump**2 * np.arange(points - 1, -1, -1)
    length = length - sum(with_step(column) ** 2 for column in fitted)
    length[:, 0] = 1.0  # a step at the first point is no change
    explained = with_step(left) ** 2 / np.maximum(length, 1e-12)
    explained[:, :BESIDE] = explained[:, points - BESIDE + 1 :] = 0.0
    rest = np.sum(left**2, axis=1)[:, np.newaxis] - explained
    squares: Series = explained * (points - len(fitted) - 1) / np.maximum(rest, 1e-300)
    return squares


def _correlation(values: Series, at: NDArray[np.intp]) -> tuple[Series, Series]:
    """Return the autocorrelation of each row after removal of a line and a step ``at``, and its
    standard error, for noise that may change its size (White).

    A drift or jump that was not removed would be taken for correlated noise."""
    points = values.shape[1]
    fitted = _fitted(points, True, np.zeros(len(values)))
    left = _without(values, fitted)
    step = _without((np.arange(points) >= at[:, np.newaxis]).astype(float), fitted)
    size = np.sum(left * step, axis=1) / np.maximum(np.sum(step**2, axis=1), 1e-12)
    left = left - size[:, np.newaxis] * step
    products = np.sum((left[:, 1:] * left[:, :-1]) ** 2, axis=1)
    error = np.sqrt(products) / np.maximum(np.sum(left**2, axis=1), 1e-300)
    return _corrected(left, len(fitted) + 1), error


def _corrected(left: Series, fitted: int) -> Series:
    """Return the first-order autocorrelation of each row of residuals.
    Corrects the bias that comes from ``fitted`` estimated parameters."""
    points = left.shape[1]
    products = np.sum(left[:, 1:] * left[:, :-1], axis=1)
    lagged = products / np.maximum(np.sum(left**2, axis=1), 1e-300)
    result: Series = np.clip((points * lagged + fitted) / (points - fitted), 0.0, 0.9)
    return result


def _fitted(points: int, line: bool, correlation: Series) -> list[Series]:
    """Return orthonormal columns of a level and, with ``line``, a slope, each of shape (rows,
    points). They are transformed by :func:`_unrelated`."""
    rows = len(correlation)
    level = _unrelated(np.ones((rows, points)), correlation)
    columns = [level / np.linalg.norm(level, axis=1, keepdims=True)]
    if line:
        rising = np.broadcast_to(np.arange(points) - (points - 1) / 2, (rows, points))
        slope = _without(_unrelated(rising, correlation), columns)
        columns.append(slope / np.linalg.norm(slope, axis=1, keepdims=True))
    return columns


def _unrelated(values: Series, correlation: Series) -> Series:
    """Return the innovations of each row (Prais & Winsten)."""
    related = correlation[:, np.newaxis]
    first = np.sqrt(1 - related**2) * values[:, :1]
    return np.concatenate([first, values[:, 1:] - related * values[:, :-1]], axis=1)


def _without(values: Series, fitted: Sequence[Series]) -> Series:
    """Return the residuals of each row after projection on orthonormal columns."""
    for column in fitted:
        values = values - np.sum(values * column, axis=1, keepdims=True) * column
    return values
