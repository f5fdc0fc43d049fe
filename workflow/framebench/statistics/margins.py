"""Test whether a factor lies beyond a margin or within it.

Each claim must be shown. If neither is, more measurements are needed.

The claim "not slower by more than the margin" is a test of non-inferiority, one half of
Schuirmann's two one-sided tests. A set of cases passes if each case does (Berger's
intersection-union test), so this claim needs no adjustment for their number. The claim "slower by
more than the margin" singles out cases among many, and is adjusted (:func:`intervals.family_wise`).

Sources:

- Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach", *Journal
  of Pharmacokinetics and Biopharmaceutics* 15, 1987.
- Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", *Technometrics* 24, 1982.
- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, section 3.1 (how
  many pairs the signed rank test needs compared with the t-test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from . import intervals, signed_rank

#: One-sided level: a single case is decided exactly where its whole 95 % interval lies on one side
#: of the limit.
LEVEL = (1 - intervals.CONFIDENCE) / 2
#: Probability of a decision with the estimated number of pairs, if the observed factor is true.
POWER = 0.8
#: Largest number of pairs that is worth suggesting.
MOST = 1000
#: Asymptotic efficiency of the rank tests relative to the t-test, for normal values: 3/pi.
_EFFICIENCY = 3 / math.pi


class Claims(NamedTuple):
    """Unadjusted p-values of both claims about one case."""

    beyond: float
    within: float


def of_pairs(ratios: Sequence[float], margin: float) -> Claims:
    """Test the claims on ratios of pairs; above 1 is better. ``margin``: a fraction."""
    return Claims(*signed_rank.one_sided([ratio / (1 - margin) for ratio in ratios]))


def of_sets(base: Sequence[float], candidate: Sequence[float], margin: float) -> Claims:
    """Test the claims on the repeats of two sets; higher is better."""
    limit = [(1 - margin) * value for value in base]
    return Claims(*intervals.one_sided_rank_test(limit, candidate))


def scatter_of_pairs(ratios: Sequence[float]) -> float:
    """Return the standard deviation of the logarithms of ratios; 0 for fewer than two."""
    return float(np.std(np.log(ratios), ddof=1)) if len(ratios) > 1 else 0.0


def scatter_of_sets(base: Sequence[float], candidate: Sequence[float]) -> float:
    """Return the scatter of ratios as if repeats of both sides were paired."""
    return math.hypot(scatter_of_pairs(base), scatter_of_pairs(candidate))


def needed(factor: float, scatter: float, margin: float, cases: int) -> int | None:
    """Estimate the pairs that decide a case, if its observed ``factor`` is the true one.
    With probability POWER all of ``cases`` such cases are decided. None for more than MOST pairs:
    the factor lies too close to the limit."""
    fewest = signed_rank.pairs_needed(cases)
    apart = abs(math.log(factor / (1 - margin)))
    normal = NormalDist()
    level = LEVEL / cases if factor < 1 - margin else LEVEL
    width = (normal.inv_cdf(1 - level) + normal.inv_cdf(POWER ** (1 / cases))) * scatter
    if width**2 > MOST * _EFFICIENCY * apart**2:
        return None
    return fewest if not scatter else max(fewest, math.ceil((width / apart) ** 2 / _EFFICIENCY))
