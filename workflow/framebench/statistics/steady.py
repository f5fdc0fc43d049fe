"""Test whether the timed steps of a run are steady: no change, no trend and no stalled step.

Sources named below:
- Andrews, "Tests for Parameter Instability and Structural Change with Unknown Change Point",
  *Econometrica* 61, 1993 (the largest of many likelihood ratios).
- Cochrane & Orcutt, "Application of Least Squares Regression to Relationships Containing
  Auto-Correlated Error Terms", *Journal of the American Statistical Association* 44, 1949.
- Box, Jenkins & Reinsel, *Time Series Analysis*, 3rd ed., 1994, chapter 7 (the likelihood of a
  series of first order).
- Huber, *Robust Statistics*, 1981 (values that are farther than a limit count as at it).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .descriptive import median

#: A window with a change is unsteady where the change is this sure and at least this large, as a
#: part of the step time: with many steps, every change becomes sure, however small.
SIGNIFICANCE = 0.01
RELEVANT = 0.02

#: The fewest steps that are looked at for a change: with these, each of those that
#: docs/measuring.md lists is seen in three windows of four or more, with fewer it is not.
FEWEST_STEPS = 20

#: A step stalled that took more than this many times as long as any other.
STALL = 3.0

#: More than this is not put down to steps that hang together: a change looks like that.
TOGETHER = 0.65

#: Step times count up to so many standard deviations (if they were normal) from their median.
FARTHEST = 3.0

#: Where in the window a step is looked for, in parts of it; and the time constants of starts that
#: fade.
STEPS_AT = tuple(percent / 100 for percent in range(10, 95, 5))
FADES = (0.05, 0.1, 0.2, 0.4)
#: Of so many parts of the window, the first and the last say how large a trend is.
PARTS = 5

#: All these shapes resemble each other: the p-value is that of so many independent ones, of a
#: window that is so many steps shorter. By simulation, which also holds both.
INDEPENDENT_SHAPES = 10
ESTIMATED = 4


@dataclass(frozen=True)
class StepTimeChange:
    """A sure one, from the first ``before`` steps to those from index ``after`` on: the same number
    unless the change is gradual. ``factor``: median step time of the latter over that of the
    former; ``p_value``: how likely so clear a change is among steps that do not change."""

    before: int
    after: int
    factor: float
    p_value: float

    @property
    def matters(self) -> bool:
        """Whether the change is large enough to be relevant."""
        return abs(self.factor - 1) >= RELEVANT

    def words(self, count: int) -> str:
        """Describe the change in a timed region of ``count`` steps."""
        size = f"{self.factor - 1:+.1%}"
        sure = f"(p = {self.p_value:.1g})"
        if self.before == self.after:
            return f"steps took {size} from step {self.after + 1} of {count} on {sure}"
        last = count - self.after
        return f"the last {last} of {count} steps took {size} against the first {last} {sure}"


def change(seconds: Sequence[float]) -> StepTimeChange | None:
    """The clearest change of the step times ``seconds``; None where none is sure at SIGNIFICANCE,
    for fewer than FEWEST_STEPS, and where one is 0.

    1. Step times farther than FARTHEST from their median count as that far (Huber): stalls weigh no
       more than any slow step, and stalls all over the window are no change.
    2. Without a change they are a series of first order: neighbours hang together, with a
       coefficient from 0 to TOGETHER.
    3. With one, they are such a series around a step, a line, or a start that fades. Its size is
       estimated by least squares, and the coefficient from what it leaves (Cochrane & Orcutt): a
       drift is not put down to steps that hang together.
    4. The p-value is that of the largest ratio of the likelihoods of 3 and 2 (Andrews).

    By simulation a change that :attr:`Change.matters` is seen in about 1 % at most of windows of
    independent steps that do not change, and in 3 % where neighbours have a correlation of 0.5.
    """
    if len(seconds) < FEWEST_STEPS or min(seconds) <= 0:  # no clock gave such a step
        return None
    values = _clipped(np.asarray(seconds, dtype=float))
    values = values - values.mean()
    if not values.any():
        return None
    shapes = _shapes(len(values))
    without, *changed = _log_likelihoods(values - (shapes @ values)[:, None] * shapes, values)
    best = int(np.argmax(changed))
    p_value = _p_value(2 * float(changed[best] - without), len(values))
    if p_value > SIGNIFICANCE:
        return None
    before, after = _sides(best, values)
    factor = median(seconds[after:]) / median(seconds[:before])
    return StepTimeChange(before, after, factor, p_value)


@dataclass(frozen=True)
class Stall:
    """``step`` steps lie before the one that stalled, which took ``seconds``; the longest of the
    others took ``next_longest``."""

    step: int
    seconds: float
    next_longest: float


def stall(seconds: Sequence[float]) -> Stall | None:
    """The one step that changed the throughput of a window with these step times by RELEVANT or
    more: it took more than STALL times as long as any other, and what it took beyond the median is
    that part of the window. None where there is none, and of fewer than three steps.

    It is no test: a step that long is called whatever the noise. By simulation that happens in at
    most one of 1,000 windows whose step times are normal (10 %) or skewed (lognormal, 30 %), and in
    one of 100 where they are so skewed that the longest of 20 takes three times the median
    (lognormal, 60 %, ten steps or more). A step of five times the median is found in 99 of 100
    windows of 16 steps or more with 10 % of noise. Several stalls of about the same length are
    none: those are how the machine runs."""
    if len(seconds) < 3:
        return None
    ordered = sorted(seconds)
    next_longest, longest = ordered[-2:]
    if longest <= STALL * next_longest:
        return None
    if longest - median(ordered) < RELEVANT * math.fsum(seconds):
        return None
    return Stall(list(seconds).index(longest), longest, next_longest)


def unsteady(seconds: Sequence[float]) -> str:
    """Explain why step times are not steady; "" if no test detects it.

    With fewer than FEWEST_STEPS steps the tests detect little."""
    reasons = []
    largest = change(seconds)
    if largest is not None and largest.matters:
        reasons.append(largest.words(len(seconds)))
    if (long := stall(seconds)) is not None:
        reasons.append(
            f"step {long.step + 1} of {len(seconds)} took {long.seconds:.3g} s, the others at most "
            f"{long.next_longest:.3g} s"
        )
    return "; ".join(reasons)


def _clipped(values: np.ndarray) -> np.ndarray:
    """Clip outliers by the median absolute deviation; a deviation of 0 clips nothing."""
    middle = median(values.tolist())  # numpy's takes longer for the 100 steps of a window
    limit = FARTHEST * 1.4826 * median(np.abs(values - middle).tolist())
    return np.clip(values, middle - limit, middle + limit) if limit else values


@lru_cache(maxsize=16)
def _shapes(count: int) -> np.ndarray:
    """No change in ``count`` steps, and what is looked for in them: a row for each, the first of
    zeros, the others with a mean of 0 and a norm of 1."""
    place = (np.arange(count) + 0.5) / count
    steps = [np.where(place > at, 1.0, 0.0) for at in STEPS_AT]
    fades = [np.exp(-place / constant) for constant in FADES]
    shapes = np.array([*steps, place, *fades])
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
    """``before`` and ``after`` of the change that looks like that shape best."""
    count = len(values)
    if shape >= len(STEPS_AT):
        return count // PARTS, count - count // PARTS
    cuts = np.arange(1, count)
    sums = np.cumsum(values)[:-1]  # the mean of all is 0
    cut = 1 + int(np.argmax(sums**2 / (cuts * (count - cuts))))
    return cut, cut


def _p_value(ratio: float, count: int) -> float:
    """Return the p-value of a log-likelihood ratio, corrected for the number of shapes tried."""
    fewer = max(0.0, ratio) * (1 - ESTIMATED / count)
    return min(1.0, INDEPENDENT_SHAPES * math.erfc(math.sqrt(fewer / 2)))
