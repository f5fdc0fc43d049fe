"""Test whether the timed steps of a run are steady: no change, no trend, no slow start and no
stalled step.

Sources named below:
- Andrews, "Tests for Parameter Instability and Structural Change with Unknown Change Point",
  *Econometrica* 61, 1993 (the largest of many likelihood ratios).
- Cochrane & Orcutt, "Application of Least Squares Regression to Relationships Containing
  Auto-Correlated Error Terms", *Journal of the American Statistical Association* 44, 1949.
- Box, Jenkins & Reinsel, *Time Series Analysis*, 3rd ed., 1994, chapter 7 (the likelihood of a
  series of first order).
- Huber, *Robust Statistics*, 1981 (values that are farther than a limit count as at it).
- Lombard, "Rank Tests for Changepoint Problems", *Biometrika* 74, 1987 (change points by ranks).
- van der Waerden, "Order Tests for the Two-Sample Problem and their Power", *Indagationes
  Mathematicae* 14, 1952 (normal scores).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from .descriptive import median

#: Limits of an unsteady timed region: significance of the change, and its size as a fraction of the
#: step time. With many steps every change becomes significant, however small.
SIGNIFICANCE = 0.01
RELEVANT = 0.02

#: Fewest steps that are tested for a change. With these, a step or a drift of 5 % in 1 % of noise
#: is found in most timed regions; with fewer it is not.
FEWEST_STEPS = 20

#: A stalled step took more than this many times as long as any other.
STALL = 3.0

#: Largest autocorrelation of steps; a larger one is attributed to a change.
TOGETHER = 0.65

#: Outliers are clipped at this many standard deviations (if normal) from the median.
FARTHEST = 3.0

#: Positions at which a step is tested, as fractions of the timed region, and the time constants of
#: decaying start-up effects.
STEPS_AT = tuple(percent / 100 for percent in range(10, 95, 5))
FADES = (0.05, 0.1, 0.2, 0.4)
#: Parts of the timed region that may be slower or faster than the rest.
INSIDE = ((1 / 3, 2 / 3), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.2, 0.6), (0.4, 0.8))
#: Number of parts of the timed region; the first and the last give the size of a trend.
PARTS = 5

#: Effective number of independent shapes, and of steps spent on estimates, in the p-values of step
#: times and of ranks. Found by simulation, which also checks both.
OF_TIMES, OF_RANKS = (14, 4), (18, 2)


@dataclass(frozen=True)
class StepTimeChange:
    """A significant change from the first ``before`` steps to the steps from index ``after`` on.
    ``before`` equals ``after`` unless the change is gradual. With ``is_inside`` the steps from
    ``before`` to ``after`` differ from the others. ``factor``: median step time after over before,
    or inside over outside. ``p_value``: probability of so clear a change among steady steps."""

    before: int
    after: int
    factor: float
    p_value: float
    is_inside: bool = False

    @property
    def matters(self) -> bool:
        """Return whether the change is large enough to be relevant."""
        return abs(self.factor - 1) >= RELEVANT

    def text(self, count: int) -> str:
        """Describe the change in a timed region of ``count`` steps."""
        size = f"{self.factor - 1:+.1%}"
        sure = f"(p = {self.p_value:.1g})"
        if self.is_inside:
            return f"steps {self.before + 1} to {self.after} of {count} took {size} {sure}"
        if self.before == self.after:
            return f"steps took {size} from step {self.after + 1} of {count} on {sure}"
        last = count - self.after
        return f"the last {last} of {count} steps took {size} against the first {last} {sure}"


def change(seconds: Sequence[float]) -> StepTimeChange | None:
    """Return the clearest change of the step times ``seconds``; None if none is significant.
    Also None for fewer than FEWEST_STEPS steps, and if a step time is 0.

    1. Step times farther than FARTHEST from their median are clipped (Huber): a stall weighs no
       more than any slow step, and stalls all over the timed region do not count as a change.
    2. Without a change, the steps are a first-order series: neighbours are correlated, with a
       coefficient from 0 to TOGETHER.
    3. With a change, they are such a series around a step, a line, a decaying start, or a part that
       differs from the rest. The size is estimated by least squares, and the coefficient from the
       residuals (Cochrane & Orcutt), so that a drift is not attributed to correlated steps.
    4. The p-value is that of the largest likelihood ratio of 3 and 2 (Andrews). It assumes normal
       noise, so random stalls that happen to lie together look like a change.
    5. So the normal scores of the ranks (van der Waerden) must show the change, too (Lombard).
       Their p-value holds for independent steps of every distribution. The larger one counts.

    By simulation a change that :attr:`StepTimeChange.matters` is reported in 1 % at most of regions
    with independent steps, and in 3 % if neighbours have a correlation of 0.5.
    """
    if len(seconds) < FEWEST_STEPS or min(seconds) <= 0:  # no clock measures a step of 0 s
        return None
    values = _clipped(np.asarray(seconds, dtype=float))
    values = values - values.mean()
    if not values.any():
        return None
    shapes = _shapes(len(values))
    without, *changed = _log_likelihoods(values - (shapes @ values)[:, None] * shapes, values)
    best = int(np.argmax(changed))
    p_value = _p_value(2 * float(changed[best] - without), len(values), *OF_TIMES)
    if p_value <= SIGNIFICANCE:  # otherwise the ranks cannot change the result
        p_value = max(p_value, _rank_p_value(seconds))
    if p_value > SIGNIFICANCE:
        return None
    if best >= len(shapes) - 1 - len(INSIDE):
        inside = shapes[best + 1] > 0
        before, after = (int(end) for end in np.flatnonzero(np.diff(inside)) + 1)
        factor = median(seconds[before:after]) / median([*seconds[:before], *seconds[after:]])
        return StepTimeChange(before, after, factor, p_value, is_inside=True)
    before, after = _sides(best, values)
    factor = median(seconds[after:]) / median(seconds[:before])
    return StepTimeChange(before, after, factor, p_value)


def slow_start(seconds: Sequence[float]) -> int | None:
    """Return the number of slow first steps, two or three, that changed the throughput by RELEVANT.

    Each of them took longer than any later step. In a random order of n independent steps, the
    first two are the two longest in 2 / (n (n - 1)) of cases. None if there are none, and for fewer
    than FEWEST_STEPS steps."""
    if len(seconds) < FEWEST_STEPS:
        return None
    for first in (2, 3):
        if min(seconds[:first]) > max(seconds[first:]):
            excess = math.fsum(seconds[:first]) - first * median(seconds)
            if excess >= RELEVANT * math.fsum(seconds):
                return first
    return None


def stall(seconds: Sequence[float]) -> int | None:
    """Return the index of the one step that changed the throughput of a region by RELEVANT or more.
    It took more than STALL times as long as any other, and its excess over the median is at least
    that fraction of the region. None if there is none, and for fewer than three steps.

    This is not a statistical test: so long a step is reported whatever the noise. If stalls come at
    random, a region with exactly one is reported, too. By simulation that happens in at most one of
    1,000 regions whose step times are normal (10 %) or skewed (lognormal, 30 %). In strongly skewed
    regions, where the longest of 20 takes three times the median (lognormal, 60 %, ten steps or
    more), it is one of 100. A step of five times the median is found in 99 of 100 regions of 16
    steps or more with 10 % of noise. Several stalls of about the same length are not reported."""
    if len(seconds) < 3:
        return None
    ordered = sorted(seconds)
    next_longest, longest = ordered[-2:]
    if longest <= STALL * next_longest:
        return None
    if longest - median(ordered) < RELEVANT * math.fsum(seconds):
        return None
    return list(seconds).index(longest)


def unsteady(seconds: Sequence[float]) -> str:
    """Explain why step times are not steady; "" if no test detects it.

    With fewer than FEWEST_STEPS steps the tests detect little."""
    reasons = []
    largest = change(seconds)
    if largest is not None and largest.matters:
        reasons.append(largest.text(len(seconds)))
    elif first := slow_start(seconds):
        reasons.append(f"the first {first} of {len(seconds)} steps took longer than all others")
    if (step := stall(seconds)) is not None:
        *_, others, longest = sorted(seconds)
        place = f"step {step + 1} of {len(seconds)}"
        reasons.append(f"{place} took {longest:.3g} s, the others at most {others:.3g} s")
    return "; ".join(reasons)


def _clipped(values: np.ndarray) -> np.ndarray:
    """Clip outliers by the median absolute deviation; a deviation of 0 clips nothing."""
    middle = median(values.tolist())  # faster than numpy's median for 100 steps
    limit = FARTHEST * 1.4826 * median(np.abs(values - middle).tolist())
    return np.clip(values, middle - limit, middle + limit) if limit else values


def _rank_p_value(seconds: Sequence[float]) -> float:
    """Return the p-value of the clearest shape in the normal scores of independent steps.
    Ties are ordered at random, with a seed."""
    count = len(seconds)
    scores, ties = _normal_scores(count)
    found = np.empty(count)
    found[np.lexsort((ties, np.asarray(seconds)))] = scores
    explained = float(np.max((_shapes(count) @ found) ** 2) / (scores @ scores))
    return _p_value(-count * math.log(1 - explained), count, *OF_RANKS)


@lru_cache(maxsize=16)
def _normal_scores(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the normal scores of the ranks 1 .. ``count``, and a random order for ties."""
    quantile = NormalDist().inv_cdf
    scores = np.array([quantile((rank + 0.5) / count) for rank in range(count)])
    return scores, np.random.default_rng(count).permutation(count)


@lru_cache(maxsize=16)
def _shapes(count: int) -> np.ndarray:
    """Return the shapes of change that are tested in ``count`` steps, one per row.
    The first row is zero (no change); the others have a mean of 0 and a norm of 1."""
    position = (np.arange(count) + 0.5) / count
    steps = [np.where(position > at, 1.0, 0.0) for at in STEPS_AT]
    fades = [np.exp(-position / constant) for constant in FADES]
    parts = [np.where((position > low) & (position < high), 1.0, 0.0) for low, high in INSIDE]
    shapes = np.array([*steps, position, *fades, *parts])
    shapes -= shapes.mean(axis=1, keepdims=True)
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    return np.vstack([np.zeros(count), shapes])


def _log_likelihoods(series: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the log-likelihood, up to a constant, of each row as a first-order process around 0.

    Variances below a fraction of that of ``values`` are rounding errors and are raised to it."""
    squares = np.einsum("ij,ij->i", series, series)
    inner = squares - series[:, 0] ** 2 - series[:, -1] ** 2
    products = np.einsum("ij,ij->i", series[:, 1:], series[:, :-1])
    least = 1e-12 * float(values @ values)
    together = np.clip(products / np.maximum(inner, least), 0, TOGETHER)
    innovations = np.maximum(squares - 2 * together * products + together**2 * inner, least)
    return np.asarray((np.log(1 - together**2) - len(values) * np.log(innovations)) / 2)


def _sides(shape: int, values: np.ndarray) -> tuple[int, int]:
    """Return ``before`` and ``after`` of the change with the given shape."""
    count = len(values)
    if shape >= len(STEPS_AT):
        return count // PARTS, count - count // PARTS
    cuts = np.arange(1, count)
    sums = np.cumsum(values)[:-1]  # the mean of all values is 0
    cut = 1 + int(np.argmax(sums**2 / (cuts * (count - cuts))))
    return cut, cut


def _p_value(ratio: float, count: int, tried: int, estimated: int) -> float:
    """Return the p-value of a log-likelihood ratio, corrected for the number of shapes tried."""
    fewer = max(0.0, ratio) * (1 - estimated / count)
    return min(1.0, tried * math.erfc(math.sqrt(fewer / 2)))
