"""Whether the timed steps of a run are steady: the same at the end of the window as at its start,
and none that takes a part of the window for itself.

Sources named below:
- Pettitt, "A Non-Parametric Approach to the Change-Point Problem", *Applied Statistics* 28, 1979.
- Bayley & Hammersley, "The 'Effective' Number of Independent Observations in an Autocorrelated
  Time Series", *Supplement to the JRSS* 8, 1946.
- Box, Jenkins & Reinsel, *Time Series Analysis*, 3rd ed., 1994, chapter 3 (first order).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from .descriptive import median
from .ranks import average_ranks

#: A window with a change is unsteady where the change is this sure and at least this large, as a
#: part of the step time: with many steps, every change becomes sure, however small.
SIGNIFICANCE = 0.01
RELEVANT = 0.02

#: A step stalled that took more than this many times as long as any other.
STALL = 3.0

#: More than this is not put down to steps that hang together: a ramp without noise looks like that.
TOGETHER = 0.65


@dataclass(frozen=True)
class Change:
    """``step`` steps lie before the change. ``factor``: median step time after it over that before;
    ``p_value``: how likely so clear a change is among steps that do not change."""

    step: int
    factor: float
    p_value: float

    @property
    def matters(self) -> bool:
        """Both sure and large enough."""
        return self.p_value <= SIGNIFICANCE and abs(self.factor - 1) >= RELEVANT


@cache
def fewest_steps() -> int:
    """The fewest steps of which a change can be sure: 16. With fewer, even all steps of one half
    slower than all of the other may be chance."""
    count = 4
    while _p_value((count // 2) * (count - count // 2), count, 0.0) > SIGNIFICANCE:
        count += 1
    return count


def change_point(seconds: Sequence[float]) -> Change | None:
    """Where the step times ``seconds`` change most; None for fewer than :func:`fewest_steps`, and
    where one is 0.

    Pettitt's test: of all ways to cut the series in two, the one whose parts differ most by the
    rank sum statistic. Ranks alone count, so that stalls, however long, weigh no more than any slow
    step, and stalls all over the window are no change. It finds steps and, cut in their middle,
    ramps; a change near an end, which moves the throughput little, only where it is large. Steps
    that hang together differ by chance: they count as fewer (Bayley & Hammersley). By simulation a
    change that :attr:`Change.matters` is found in at most 1 % of windows of independent steps that
    do not change, and in 3 % where neighbours have a correlation of 0.5.
    """
    count = len(seconds)
    if count < fewest_steps() or min(seconds) <= 0:  # no clock gave such a step
        return None
    values = np.asarray(seconds, dtype=float)
    before = np.arange(1, count)
    statistic = 2 * np.cumsum(average_ranks(values))[:-1] - before * (count + 1)
    cut = int(np.argmax(np.abs(statistic))) + 1
    steps = values.tolist()
    factor = median(steps[cut:]) / median(steps[:cut])
    p_value = _p_value(float(np.abs(statistic[cut - 1])), count, _autocorrelation(values))
    return Change(cut, factor, p_value)


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
    """Why a window with these step times is not steady, in words; "" where it is, or where it is
    too short to tell."""
    reasons = []
    change = change_point(seconds)
    if change is not None and change.matters:
        reasons.append(
            f"steps took {change.factor - 1:+.1%} from step {change.step + 1} of {len(seconds)} on "
            f"(p = {change.p_value:.1g})"
        )
    if (long := stall(seconds)) is not None:
        reasons.append(
            f"step {long.step + 1} of {len(seconds)} took {long.seconds:.3g} s, the others at most "
            f"{long.next_longest:.3g} s"
        )
    return "; ".join(reasons)


def _p_value(statistic: float, count: int, together: float) -> float:
    """Pettitt's approximation, whose error is small where it matters, below 0.5."""
    fewer = (1 - together) / (1 + together)
    exponent = -6 * statistic**2 / (count**3 + count**2) * fewer
    return min(1.0, 2 * math.exp(exponent))


def _autocorrelation(values: np.ndarray) -> float:
    """How much neighbours hang together, 0 to TOGETHER, if the series were one of first order.

    From the differences of neighbours, in which a step or a slow ramp hardly shows: of a series of
    first order with coefficient f they have an autocorrelation of (f - 1) / 2 (Box, Jenkins &
    Reinsel); from their ranks, because of stalls. Less half its standard error, which is
    sqrt(2 / count) where nothing hangs together: else half of such windows would seem to.
    """
    ranks = average_ranks(np.diff(values))
    ranks -= ranks.mean()
    total = float(ranks @ ranks)
    found = 1 + 2 * float(ranks[1:] @ ranks[:-1]) / total if total else 0.0
    return min(TOGETHER, max(0.0, found - math.sqrt(0.5 / len(values))))
