"""Test whether the timed steps of a run are steady: no change, no trend, no slow start and no
stalled step.

Sources named below:
- Lombard, "Rank Tests for Changepoint Problems", *Biometrika* 74, 1987 (change points by ranks).
- van der Waerden, "Order Tests for the Two-Sample Problem and their Power", *Indagationes
  Mathematicae* 14, 1952 (normal scores).
- Bayley & Hammersley, "The 'Effective' Number of Independent Observations in an Autocorrelated Time
  Series", *Supplement to the JRSS* 8, 1946.
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
#: is found in half of the timed regions; with fewer it is not.
FEWEST_STEPS = 20

#: A stalled step took more than this many times as long as any other.
STALL = 3.0

#: Largest autocorrelation of steps; a larger one is attributed to a change.
TOGETHER = 0.65

#: Positions at which a step is tested, as fractions of the timed region, and the time constants of
#: decaying start-up effects.
STEPS_AT = tuple(percent / 100 for percent in range(10, 95, 5))
FADES = (0.05, 0.1, 0.2, 0.4)
#: Parts of the timed region that may be slower or faster than the rest.
INSIDE = ((1 / 3, 2 / 3), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.2, 0.6), (0.4, 0.8))
#: Number of parts of the timed region; the first and the last give the size of a trend.
PARTS = 5

#: Effective number of independent shapes, and of steps spent on estimates. Found by simulation,
#: which also checks both.
TRIED, ESTIMATED = 18, 2


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

    1. The normal scores of the ranks (van der Waerden) are compared with every shape: a step, a
       line, a decaying start, and a part that differs from the rest. The shape that explains most
       counts (Lombard). Ranks hold for every distribution: a stall weighs no more than any slow
       step, and stalls all over the timed region are no change.
    2. Neighbours are correlated, with a coefficient that is estimated from what the shape leaves,
       and at most TOGETHER. They count as so many fewer independent steps (Bayley & Hammersley).

    By simulation a change that :attr:`StepTimeChange.matters` is reported in 1 % at most of regions
    with independent steps, and in 2 % if neighbours have a correlation of 0.5.
    """
    count = len(seconds)
    if count < FEWEST_STEPS or min(seconds) <= 0:  # no clock measures a step of 0 s
        return None
    scores, shapes = _scores(seconds), _shapes(count)
    sizes = shapes @ scores
    best = int(np.argmax(sizes**2))
    explained = float(sizes[best] ** 2 / (scores @ scores))
    alike = _correlation(scores - sizes[best] * shapes[best])
    p_value = _p_value(explained, count * (1 - alike) / (1 + alike), count)
    if p_value > SIGNIFICANCE:
        return None
    if best >= len(shapes) - len(INSIDE):
        inside = shapes[best] > 0
        before, after = (int(end) for end in np.flatnonzero(np.diff(inside)) + 1)
        factor = median(seconds[before:after]) / median([*seconds[:before], *seconds[after:]])
        return StepTimeChange(before, after, factor, p_value, is_inside=True)
    before, after = _sides(best, scores)
    factor = median(seconds[after:]) / median(seconds[:before])
    return StepTimeChange(before, after, factor, p_value)


def slow_start(seconds: Sequence[float]) -> int | None:
    """Return the number of slow first steps, two or three, that changed the throughput by RELEVANT.

    They are the longest of all. In any order of n independent steps the first two are the two
    longest in 2 / (n (n - 1)) of cases. None if there are none, and for fewer than FEWEST_STEPS
    steps."""
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

    This is no test: so long a step is reported whatever the noise. If stalls come at random, a
    region with exactly one is reported, too. By simulation that happens in at most one of 1,000
    regions whose step times are normal (10 %) or skewed (lognormal, 30 %). In strongly skewed
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


def _scores(seconds: Sequence[float]) -> np.ndarray:
    """Return the normal scores of the ranks. Ties are ordered at random, with a seed."""
    scores, ties = _normal_scores(len(seconds))
    found = np.empty(len(seconds))
    found[np.lexsort((ties, np.asarray(seconds)))] = scores
    return found


@lru_cache(maxsize=16)
def _normal_scores(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the normal scores of the ranks 1 .. ``count``, and a random order for ties."""
    quantile = NormalDist().inv_cdf
    scores = np.array([quantile((rank + 0.5) / count) for rank in range(count)])
    return scores, np.random.default_rng(count).permutation(count)


@lru_cache(maxsize=16)
def _shapes(count: int) -> np.ndarray:
    """Return the shapes of change that are tested in ``count`` steps, one per row.
    They have a mean of 0 and a norm of 1."""
    position = (np.arange(count) + 0.5) / count
    steps = [np.where(position > at, 1.0, 0.0) for at in STEPS_AT]
    fades = [np.exp(-position / constant) for constant in FADES]
    parts = [np.where((position > low) & (position < high), 1.0, 0.0) for low, high in INSIDE]
    shapes = np.array([*steps, position, *fades, *parts])
    shapes -= shapes.mean(axis=1, keepdims=True)
    shapes /= np.linalg.norm(shapes, axis=1, keepdims=True)
    return shapes


def _correlation(residuals: np.ndarray) -> float:
    """Return a standard error above the correlation of neighbours, at most TOGETHER.

    It is corrected for the bias that comes from ESTIMATED."""
    count, squares = len(residuals), max(float(residuals @ residuals), 1e-12)
    found = count * float(residuals[1:] @ residuals[:-1]) / squares
    corrected = (found + ESTIMATED) / (count - ESTIMATED)
    return min(max(corrected, 0.0) + 1 / math.sqrt(count), TOGETHER)


def _sides(shape: int, scores: np.ndarray) -> tuple[int, int]:
    """Return ``before`` and ``after`` of the change with the given shape."""
    count = len(scores)
    if shape >= len(STEPS_AT):
        return count // PARTS, count - count // PARTS
    cuts = np.arange(1, count)
    sums = np.cumsum(scores)[:-1]  # the mean of all scores is 0
    cut = 1 + int(np.argmax(sums**2 / (cuts * (count - cuts))))
    return cut, cut


def _p_value(explained: float, independent: float, count: int) -> float:
    """Return the p-value of the fraction of the scores' squares that the best shape explains.

    ``independent``: effective number of independent steps among ``count``."""
    ratio = -independent * math.log(max(1 - explained, 1e-12)) * (1 - ESTIMATED / count)
    return min(1.0, TRIED * math.erfc(math.sqrt(ratio / 2)))
