"""Signed-rank statistics of paired ratios: estimate, interval, and test of the factor.

The two runs of a pair see the same state of the machine. It is a factor of both, so their ratio
does not have it, however much it wanders from pair to pair. All here is Wilcoxon's signed rank
statistic of the logarithms of the ratios, in its exact distribution over all signs: no random
numbers, no minimum of pairs for an approximation to hold.

Assumed is that a logarithm lies as far above its middle as below it, as often. Where the order
within each pair is random (:func:`matrix.rounds`) and the two sides differ by a factor alone, that
is so for any distribution and any drift: to swap the two runs changes the sign of what is left, and
nothing else. Ranks and not the mean, because a repeat that was disturbed moves a rank by a few
places, but a mean as far as it likes; of normal values they need 5 % more pairs for the same power.

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
from .ranks import average_ranks


def estimate(ratios: Sequence[float]) -> float:
    """The factor: the median of the geometric means of every two ratios, and of each with itself
    (Hodges & Lehmann, on logarithms). Ratios are positive; there must be one."""
    return math.exp(float(np.median(_averages(ratios))))


def interval(ratios: Sequence[float]) -> Interval | None:
    """Interval for the factor, at CONFIDENCE.

    The geometric means of every two ratios, sorted; the ends are those that the distribution of the
    statistic says (Tukey, on logarithms). It excludes 1 exactly where :func:`p_value` is at most
    1 - CONFIDENCE, as long as no two ratios are equally far from 1. None with too few pairs: even
    the extreme ratios would not reach CONFIDENCE (see :func:`pairs_needed`)."""
    below = _at_most(tuple(range(2, 2 * len(ratios) + 1, 2)))[::2]
    rank = int(np.searchsorted(below, (1 - CONFIDENCE) / 2, side="right"))
    if rank == 0:
        return None
    averages = _averages(ratios)
    return math.exp(float(averages[rank - 1])), math.exp(float(averages[-rank]))


def p_value(ratios: Sequence[float]) -> float:
    """Two-sided: how often signs drawn at random give a sum of ranks as far from its middle as that
    of these ratios. Exact, also with ties, which share their ranks. A ratio of 1 has a rank, but no
    sign (Pratt)."""
    return min(1.0, 2 * min(one_sided(ratios)))


def one_sided(ratios: Sequence[float]) -> tuple[float, float]:
    """The two one-sided p-values, by the same ranks: the first is small where the factor is shown
    to be below 1, the second where it is shown to be above."""
    logarithms = np.log(ratios).round(12)  # ties but for an error of rounding are ties
    # Ranks of ties are halves: twice of them are whole.
    ranks = np.rint(2 * average_ranks(np.abs(logarithms))).astype(int)
    above, under = (int(ranks[side].sum()) for side in (logarithms > 0, logarithms < 0))
    below = _at_most(tuple(sorted(int(rank) for rank in ranks[logarithms != 0])))
    return float(below[above]), float(below[under])


def pairs_needed(cases: int) -> int:
    """The fewest pairs with which a single difference among so many ``cases`` can be shown.

    With all ratios on one side of 1 the p-value is 2 (1/2)^n, which adjusting for the number of
    cases may multiply by it (:func:`intervals.adjusted`): 6 for one case, 10 for 20."""
    count = 1
    while 2 * cases / 2**count > 1 - CONFIDENCE:
        count += 1
    return count


def _averages(ratios: Sequence[float]) -> np.ndarray:
    """Walsh averages of the logarithms: of every two, and each itself; sorted."""
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
        chances[rank:] += chances[:-rank]  # numpy reads all of it before it writes
        chances /= 2
    return np.cumsum(chances)
