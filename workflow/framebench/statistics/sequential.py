"""Group-sequential sign test of ratios of pairs against a limit.

After each of a few fixed numbers of pairs (LOOKS) a case is decided, or measured further:

- Within the margin: so few pairs lie at or below the limit that a median at the limit is excluded.
- Beyond it: so few lie at or above the limit, at a level divided by the number of cases
  (Bonferroni).

If the median is at the limit, these counts are Binomial(n, 1/2), so critical values follow exactly
from a recursion over the looks. Each look spends a part of the error rate (:func:`_spent`); all
parts add up to no more than the level. Spending depends on the number of pairs alone: a higher
limit on pairs continues the same test.

The test judges the median pair. It assumes independent pairs, but neither symmetry nor equal
distributions. A candidate that stalls in some runs and is unchanged in most has a median of 1. If
the order within pairs is random (:func:`matrix.rounds`), drift that both runs of a pair share makes
no difference. For normal noise, the test needs 1.5 times the pairs of the signed rank test.

The ends of the interval are order statistics: repeated confidence intervals, which hold at all
looks together.

Sources:

- Jennison & Turnbull, *Group Sequential Methods with Applications to Clinical Trials*, 2000,
  chapters 7 (spending of errors), 9 (repeated confidence intervals) and 12 (binary data).
- Lan & DeMets, "Discrete Sequential Boundaries for Clinical Trials", *Biometrika* 70, 1983.
- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, sections 3.4 to
  3.6 (the sign test, its estimate and its interval).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .descriptive import median
from .intervals import CONFIDENCE, Interval, median_interval, moses_interval

#: One-sided level: a single case is decided exactly where its whole 95 % interval lies on one side
#: of the limit.
LEVEL = (1 - CONFIDENCE) / 2
#: Numbers of pairs after which a case may be decided.
LOOKS = (8, 12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675, 1000)


class Bounds(NamedTuple):
    """Median of the ratios of a case, with its bounds.

    ``interval``: at 95 %; ``upper``: bound at 97.5 %, adjusted for the number of cases; both None
    with too few pairs. ``pairs``: number of pairs used, 0 for two sets.
    """

    ratio: float
    interval: Interval | None
    upper: float | None
    pairs: int

    def is_within(self, margin: float) -> bool:
        """Return whether the case is shown not to be slower by the margin."""
        return self.interval is not None and self.interval[0] > 1 - margin

    def is_beyond(self, margin: float) -> bool:
        """Return whether the case is shown to be slower by more than the margin."""
        return self.upper is not None and self.upper < 1 - margin

    def decides(self, margin: float) -> bool:
        return self.is_within(margin) or self.is_beyond(margin)


def bounds(ratios: Sequence[float], margin: float, cases: int) -> Bounds:
    """Return the bounds at the first look that decides a case, else at the last one so far.

    ``ratios``: in the order of measurement, above 1 is better, at least one; ``cases``: number of
    cases that are compared.
    """
    result = Bounds(median(ratios), None, None, len(ratios))
    for number, look in enumerate(LOOKS):
        if look > len(ratios):
            break
        ends = (critical_counts(level)[number] for level in (LEVEL, LEVEL / cases))
        result = _bounds(ratios[:look], *ends)
        if result.decides(margin):
            break
    return result


def bounds_of_sets(base: Sequence[float], candidate: Sequence[float], cases: int) -> Bounds:
    """Return the bounds of repeats that were not measured in pairs, by Moses' interval.

    The number of repeats is fixed in advance; higher is better.
    """
    adjusted = moses_interval(base, candidate, 1 - 2 * LEVEL / cases)
    interval = moses_interval(base, candidate)
    ratio = median(candidate) / median(base)
    return Bounds(ratio, interval, adjusted and adjusted[1], 0)


def fixed_bounds(ratios: Sequence[float], cases: int) -> Bounds:
    """Return the bounds of a number of pairs that was fixed in advance."""
    adjusted = median_interval(ratios, 1 - 2 * LEVEL / cases)
    return Bounds(median(ratios), median_interval(ratios), adjusted and adjusted[1], len(ratios))


def next_look(pairs: int) -> int | None:
    """Return the first look with more than ``pairs`` pairs; None after the last."""
    return next((look for look in LOOKS if look > pairs), None)


@lru_cache
def critical_counts(level: float) -> tuple[int, ...]:
    """Return, per look, the largest count of pairs across the limit that decides a case, or -1."""
    alive, before, spent, found = np.ones(1), 0, 0.0, []
    for look in LOOKS:
        alive = np.convolve(alive, _chances(look - before))
        left = level * _spent(look) - spent
        count = int(np.searchsorted(np.cumsum(alive), left, side="right")) - 1
        spent += float(alive[: count + 1].sum())
        alive[: count + 1] = 0
        found.append(count)
        before = look
    return tuple(found)


def _spent(pairs: int) -> float:
    """Return the part of the level that all looks up to ``pairs`` may spend: a quarter at 8 pairs,
    85 % at 40."""
    return 1 - 6 / pairs


def _chances(count: int) -> np.ndarray:
    """Return the probabilities of Binomial(``count``, 1/2)."""
    return np.array([math.comb(count, k) / 2**count for k in range(count + 1)])


def _bounds(ratios: Sequence[float], count: int, count_of_cases: int) -> Bounds:
    """Return bounds by order statistics. Critical counts: ``count`` of one case, ``count_of_cases``
    adjusted for all cases."""
    ordered = sorted(ratios)
    interval = (ordered[count], ordered[-1 - count]) if count >= 0 else None
    upper = ordered[-1 - count_of_cases] if count_of_cases >= 0 else None
    return Bounds(median(ratios), interval, upper, len(ratios))
