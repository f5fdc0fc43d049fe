"""Signed-rank statistics of paired ratios: estimate, interval, and test of the factor.

Both runs of a pair see the same state of the machine. This state is a common factor, so it cancels
in their ratio, however much it varies from pair to pair. All functions use Wilcoxon's signed rank
statistic of the logarithms of the ratios, in its exact distribution over all signs: no random
numbers, and no minimum number of pairs for an approximation.

The logarithms are assumed to be symmetric about their middle. If the order within each pair is
random (:func:`matrix.rounds`) and the two sides differ only by a factor, that holds for any
distribution and any drift: swapping the two runs only changes the sign of the residual. Ranks are
used instead of means because a disturbed repeat moves a rank by a few places, but a mean without
limit. For normal values they need 5 % more pairs for the same power.

Sources:

- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, sections 3.1 (the
  test), 3.2 (the estimate, by Hodges & Lehmann) and 3.3 (the interval, by Tukey).
- Pratt, "Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures", *Journal of the
  American Statistical Association* 54, 1959.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from .intervals import CONFIDENCE, Interval


def estimate(ratios: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate of the factor, on logarithms, of at least one positive
    ratio. It is the median of the geometric means of every two ratios, and of each with itself."""
    return math.exp(float(np.median(_averages(ratios))))


def interval(ratios: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Return an interval for the factor.
    The ends are two of the sorted geometric means of every two ratios, chosen by the distribution
    of the statistic (Tukey, on logarithms). It excludes 1 exactly where :func:`p_value` is at most
    1 - ``confidence``, unless two ratios are equally far from 1. None with too few pairs: even the
    extreme ratios would not reach ``confidence`` (see :func:`pairs_needed`)."""
    below = _at_most(tuple(range(2, 2 * len(ratios) + 1, 2)))[::2]
    rank = int(np.searchsorted(below, (1 - confidence) / 2, side="right"))
    if rank == 0:
        return None
    averages = _averages(ratios)
    return math.exp(float(averages[rank - 1])), math.exp(float(averages[-rank]))


def p_value(ratios: Sequence[float]) -> float:
    """Return the two-sided p-value of the signed rank test.
    Exact, also with ties, which share their ranks. A ratio of 1 has a rank but no sign (Pratt)."""
    logarithms = np.log(ratios).round(12)  # ties up to rounding errors are ties
    sizes = np.abs(logarithms)
    ordered = np.sort(sizes)
    # Twice the rank of each value, which is an integer; ties share their mean rank.
    ranks = np.searchsorted(ordered, sizes, "left") + np.searchsorted(ordered, sizes, "right") + 1
    below = _at_most(tuple(sorted(int(rank) for rank in ranks[logarithms != 0])))
    smaller = min(int(ranks[side].sum()) for side in (logarithms > 0, logarithms < 0))
    return min(1.0, 2 * float(below[smaller]))


def pairs_needed(cases: int) -> int:
    """Return the fewest pairs with which a single difference among ``cases`` can be shown.
    With all ratios on one side of 1 the p-value is 2 (1/2)^n, which the adjustment may multiply by
    the number of cases (:func:`intervals.adjusted`): 6 for one case, 10 for 20."""
    count = 1
    while 2 * cases / 2**count > 1 - CONFIDENCE:
        count += 1
    return count


def _averages(ratios: Sequence[float]) -> np.ndarray:
    """Return the sorted Walsh averages of the logarithms: of every two, and each itself."""
    logarithms = np.log(ratios)
    one, other = np.triu_indices(len(logarithms))
    return np.sort((logarithms[one] + logarithms[other]) / 2)


@lru_cache(maxsize=64)
def _at_most(ranks: tuple[int, ...]) -> np.ndarray:
    """Return the cumulative distribution of the signed-rank sum at 0, 1, .. sum of ``ranks``.

    Each rank is part of the sum with a probability of 1/2."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        chances[rank:] += chances[:-rank]  # numpy reads the whole right-hand side before it writes
        chances /= 2
    return np.cumsum(chances)
