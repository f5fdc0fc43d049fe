"""Distribution-free statistics of repeats: intervals, repeats needed for a width, and rank tests of
two sets of repeats and of pairs.

All assume independent repeats. If each repeat resembles the one before, intervals are too narrow;
with so few repeats no test finds that reliably (see ``benchmarks/promises``).

Sources named below:
- David & Nagaraja, *Order Statistics*, 3rd ed., 2003, section 7.1.
- Hettmansperger & Sheather, "Confidence Intervals Based on Interpolated Order Statistics",
  *Statistics & Probability Letters* 4, 1986.
- Zou & Donner, "Construction of Confidence Limits about Effect Measures: A General Approach",
  *Statistics in Medicine* 27, 2008.
- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, sections 3.1 to
  3.3 (signed rank test, its estimate by Hodges & Lehmann, its interval by Tukey), 4.1 (rank sum
  test) and 4.3 (its interval, by Moses).
- Pratt, "Remarks on Zeros and Ties in the Wilcoxon Signed Rank Procedures", *Journal of the
  American Statistical Association* 54, 1959.
- Benjamini & Hochberg, "Controlling the False Discovery Rate", *JRSS B* 57, 1995.
- Holm, "A Simple Sequentially Rejective Multiple Test Procedure", *Scandinavian Journal of
  Statistics* 6, 1979.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from .descriptive import median

CONFIDENCE = 0.95
#: Fewest repeats per side for the interval of a ratio. With six, the ratio of two different bimodal
#: sides is covered in only 92 % (simulated), and even the extreme ratios do not guarantee 95 %.
REPEATS_FOR_RATIO = 7

Interval = tuple[float, float]


def median_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Return an interval for the population's median, in the unit of ``values``.

    Of n independent values the number below the median is Binomial(n, 1/2), so the k-th smallest
    and the k-th largest enclose it with a known probability, whatever the distribution (David &
    Nagaraja). The largest k that reaches ``confidence`` is taken. Interpolation between two k
    (Hettmansperger & Sheather) is narrower, but misses the median of two equal modes too often. The
    ends equal those of ``scipy.stats.quantile_test``, which is slow to import. None with too few
    values: even minimum and maximum would not reach ``confidence``."""
    rank = _median_rank(len(values), confidence)
    ordered = sorted(values)
    return (ordered[rank - 1], ordered[-rank]) if rank else None


@lru_cache
def _median_rank(count: int, confidence: float) -> int:
    """Return the largest rank whose two values enclose the median; 0 with too few values."""
    return _rank_of_end([math.comb(count, below) for below in range(count + 1)], confidence)


def _rank_of_end(counts: Sequence[int], confidence: float) -> int:
    """Return how many of the smallest values of a symmetric statistic fit into its lower tail.

    ``counts``: number of orders or signs that give each value. The tail's probability is
    (1 - ``confidence``) / 2, computed from the exact decimal value of the confidence."""
    tail = (1 - Fraction(str(confidence))) / 2 * sum(counts)
    return sum(1 for _ in itertools.takewhile(tail.__ge__, itertools.accumulate(counts)))


def repeats_for_width(values: Sequence[float], width: float) -> int | None:
    """Estimate the repeats at which the interval of the median is at most ``width`` wide.
    ``width``: a fraction of the median, from end to end. None for fewer than two values, and for a
    median of 0. The width falls with the square root of the number of repeats. The starting point
    is the present interval; without one, the interval of normal values with this standard
    deviation, whose median has a variance of pi/2 s^2/n (David & Nagaraja)."""
    middle = abs(float(np.median(values))) if len(values) > 1 else 0.0
    if not middle:
        return None
    fewest = next(count for count in itertools.count(2) if _median_rank(count, CONFIDENCE))
    interval = median_interval(values)
    if interval is not None:
        now = (interval[1] - interval[0]) / middle
    else:
        deviation = float(np.std(values, ddof=1))
        error = deviation * math.sqrt(math.pi / 2 / len(values))
        now = 2 * NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * error / middle
    return max(fewest, math.ceil(len(values) * (now / width) ** 2))


def ratio_interval(
    base: Sequence[float], candidate: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Return an interval for the ratio of the medians of ``candidate`` and ``base``, both positive.

    The distances from each median to the ends of its own interval add up like standard errors, on
    logarithms (Zou & Donner). Assumes independent values. Spread and shape of both sides may
    differ. None with too few values on a side (see REPEATS_FOR_RATIO)."""
    ends = [median_interval(side, confidence) for side in (base, candidate)]
    if min(len(base), len(candidate)) < REPEATS_FOR_RATIO or not (ends[0] and ends[1]):
        return None
    (base_low, base_high), (low, high) = ends[0], ends[1]
    own, other = median(candidate), median(base)
    below = math.hypot(math.log(own / low), math.log(base_high / other))
    above = math.hypot(math.log(high / own), math.log(other / base_low))
    return own / other * math.exp(-below), own / other * math.exp(above)


def moses_interval(
    base: Sequence[float], candidate: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Return an interval for the factor between two sides that differ only by that factor.

    The ends are two of the sorted ratios of every candidate value to every base value, chosen by
    the exact distribution of the rank sum statistic (Hollander et al., on logarithms). It excludes
    1 exactly where :func:`rank_test` finds a difference. Narrower than :func:`ratio_interval`, and
    exists from four values per side; if spread or shape of the sides differ, it covers the ratio of
    their medians less often. None with too few values."""
    rank = _rank_of_end(rank_sums(len(base), len(candidate)), confidence)
    if rank == 0:
        return None
    ratios = np.sort(np.divide.outer(np.asarray(candidate), np.asarray(base)).ravel())
    return float(ratios[rank - 1]), float(ratios[-rank])


@lru_cache
def repeats_for_comparison(confidence: float = CONFIDENCE) -> int:
    """Return the fewest repeats per side with which a difference can be shown: 7 for 0.95.
    The ratio needs an interval, and :func:`rank_test` must be able to reach 1 - ``confidence``."""
    count = REPEATS_FOR_RATIO
    while Fraction(2, math.comb(2 * count, count)) > 1 - Fraction(str(confidence)):
        count += 1
    return count


def rank_test(base: Sequence[float], candidate: Sequence[float]) -> float:
    """Return the two-sided p-value of the rank sum test (Wilcoxon; Mann and Whitney).
    Exact without ties."""
    return min(1.0, 2 * min(one_sided_rank_test(base, candidate)))


def one_sided_rank_test(base: Sequence[float], candidate: Sequence[float]) -> tuple[float, float]:
    """Return both one-sided p-values of the rank sum test; exact without ties.
    The first is small where the candidate is shown to be below the base, the second where above."""
    if len({*base, *candidate}) == len(base) + len(candidate):
        counts = rank_sums(len(base), len(candidate))
        above = int(np.greater.outer(np.asarray(candidate), np.asarray(base)).sum())
        below = len(counts) - 1 - above
        return sum(counts[: above + 1]) / sum(counts), sum(counts[: below + 1]) / sum(counts)
    from scipy import stats  # here: slow to import, and ties of timings are rare

    less, greater = (
        float(stats.mannwhitneyu(candidate, base, alternative=side, method="asymptotic").pvalue)
        for side in ("less", "greater")
    )
    return less, greater


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for a false discovery rate (Benjamini & Hochberg).
    Of all differences called at a level, at most that fraction is false on average; the tests must
    be independent or positively dependent. Equals ``scipy.stats.false_discovery_control``, whose
    import takes longer than making a report's tables."""
    values = np.asarray(p_values, dtype=float)
    falling = np.argsort(values)[::-1]
    scaled = values[falling] * len(values) / np.arange(len(values), 0, -1)
    results = np.empty_like(values)
    results[falling] = np.minimum(1.0, np.minimum.accumulate(scaled))
    return [float(p) for p in results]


def family_wise(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for the family-wise error rate, under any dependence (Holm).
    The chance of a single false call among all of them is at most the level."""
    values = np.asarray(p_values, dtype=float)
    rising = np.argsort(values)
    scaled = values[rising] * np.arange(len(values), 0, -1)
    results = np.empty_like(values)
    results[rising] = np.minimum(1.0, np.maximum.accumulate(scaled))
    return [float(p) for p in results]


@lru_cache
def rank_sums(first: int, second: int) -> tuple[int, ...]:
    """Return how many orders of ``first`` and ``second`` values give each rank sum statistic from 0
    to first x second: the coefficients of the Gaussian binomial."""
    size = first * second + 1
    counts = [1] + [0] * (size - 1)
    for value in range(1, second + 1):
        for index in range(size - 1, first + value - 1, -1):
            counts[index] -= counts[index - first - value]
        for index in range(value, size):
            counts[index] += counts[index - value]
    return tuple(counts)


# ---- pairs ---------------------------------------------------------------------------------------

# Both runs of a pair see the same state of the machine. It is a common factor, so it cancels in
# their ratio, however much it varies from pair to pair. These functions use Wilcoxon's signed rank
# statistic of the logarithms of the ratios, in its exact distribution over all signs: no random
# numbers, and no minimum number of pairs for an approximation.
#
# The logarithms are assumed to be symmetric about their middle. If the order within each pair is
# random (:func:`matrix.rounds`) and the two sides differ only by a factor, that holds for any
# distribution and any drift: swapping the two runs only changes the sign of the residual. Ranks are
# used instead of means because a disturbed repeat moves a rank by a few places, but a mean without
# limit. For normal values they need 5 % more pairs for the same power.


def signed_rank_estimate(ratios: Sequence[float]) -> float:
    """Return the Hodges-Lehmann estimate of the factor, on logarithms, of at least one positive
    ratio. It is the median of the geometric means of every two ratios, and of each with itself."""
    return math.exp(float(np.median(_walsh_averages(ratios))))


def signed_rank_interval(
    ratios: Sequence[float], confidence: float = CONFIDENCE
) -> Interval | None:
    """Return an interval for the factor between the runs of a pair.
    The ends are two of the sorted geometric means of every two ratios, chosen by the distribution
    of the statistic (Tukey, on logarithms). It excludes 1 exactly where :func:`signed_rank_test` is
    at most 1 - ``confidence``, unless two ratios are equally far from 1. None with too few pairs:
    even the extreme ratios would not reach ``confidence`` (see :func:`pairs_needed`)."""
    below = _signed_rank_sums(tuple(range(2, 2 * len(ratios) + 1, 2)))[::2]
    rank = int(np.searchsorted(below, (1 - confidence) / 2, side="right"))
    if rank == 0:
        return None
    averages = _walsh_averages(ratios)
    return math.exp(float(averages[rank - 1])), math.exp(float(averages[-rank]))


def signed_rank_test(ratios: Sequence[float]) -> float:
    """Return the two-sided p-value of the signed rank test.
    Exact, also with ties, which share their ranks. A ratio of 1 has a rank but no sign (Pratt)."""
    logarithms = np.log(ratios).round(12)  # differences by rounding are ties
    sizes = np.abs(logarithms)
    ordered = np.sort(sizes)
    # Twice the rank of each value, which is an integer; ties share their mean rank.
    ranks = np.searchsorted(ordered, sizes, "left") + np.searchsorted(ordered, sizes, "right") + 1
    below = _signed_rank_sums(tuple(sorted(int(rank) for rank in ranks[logarithms != 0])))
    smaller = min(int(ranks[side].sum()) for side in (logarithms > 0, logarithms < 0))
    return min(1.0, 2 * float(below[smaller]))


def pairs_needed(cases: int) -> int:
    """Return the fewest pairs with which a single difference among ``cases`` can be shown.
    With all ratios on one side of 1 the p-value is 2 (1/2)^n, which the adjustment may multiply by
    the number of cases (:func:`adjusted`): 6 for one case, 10 for 20."""
    count = 1
    while 2 * cases / 2**count > 1 - CONFIDENCE:
        count += 1
    return count


def _walsh_averages(ratios: Sequence[float]) -> np.ndarray:
    """Return the sorted Walsh averages of the logarithms: means of every two, and each itself."""
    logarithms = np.log(ratios)
    one, other = np.triu_indices(len(logarithms))
    return np.sort((logarithms[one] + logarithms[other]) / 2)


@lru_cache(maxsize=64)
def _signed_rank_sums(ranks: tuple[int, ...]) -> np.ndarray:
    """Return the cumulative distribution of the signed-rank sum at 0, 1, .. sum of ``ranks``.

    Each rank is part of the sum with a probability of 1/2."""
    chances = np.zeros(sum(ranks) + 1)
    chances[0] = 1.0
    for rank in ranks:
        chances[rank:] += chances[:-rank]  # numpy reads the whole right-hand side before it writes
        chances /= 2
    return np.cumsum(chances)
