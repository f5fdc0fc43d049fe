"""Test whether a factor lies beyond a margin or within it.

Each claim must be shown. If neither is, more measurements are needed.

The claim "not slower by more than the margin" is a test of non-inferiority, one half of
Schuirmann's two one-sided tests. A set of cases passes where each case does (Berger's
intersection-union test), so that this claim needs no adjustment for their number. The claim "slower
by more than the margin" is made of single cases of many, and is adjusted
(:func:`intervals.family_wise`).

Sources:
- Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach", *Journal
  of Pharmacokinetics and Biopharmaceutics* 15, 1987.
- Berger, "Multiparameter Hypothesis Testing and Acceptance Sampling", *Technometrics* 24, 1982.
- Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed., 2014, section 3.1 (how
  many pairs the signed rank test needs beside the t-test).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from . import intervals, signed_rank

#: Of a one-sided test, so that a single case is decided exactly where all of its 95 % interval lies
#: on one side of the limit.
LEVEL = (1 - intervals.CONFIDENCE) / 2
#: With which a number of measurements is to decide, where the factor is what it seems to be.
POWER = 0.8
#: More than so many pairs are no answer.
MOST = 1000
#: Of the signed rank test and of the rank sum test beside the t-test, for normal values: 3/pi.
_EFFICIENCY = 3 / math.pi


class Claims(NamedTuple):
    """The p-values of both claims about one case, not adjusted."""

    beyond: float
    within: float


def of_pairs(ratios: Sequence[float], margin: float) -> Claims:
    """Test ratios of pairs; above 1 is better. ``margin``: a fraction."""
    return Claims(*signed_rank.one_sided([ratio / (1 - margin) for ratio in ratios]))


def of_sets(base: Sequence[float], candidate: Sequence[float], margin: float) -> Claims:
    """Test the repeats of two sets; higher is better."""
    limit = [(1 - margin) * value for value in base]
    return Claims(*intervals.one_sided_rank_test(limit, candidate))


def scatter_of_pairs(ratios: Sequence[float]) -> float:
    """Standard deviation of the logarithm of a pair's ratio; 0 for fewer than two."""
    return float(np.std(np.log(ratios), ddof=1)) if len(ratios) > 1 else 0.0


def scatter_of_sets(base: Sequence[float], candidate: Sequence[float]) -> float:
    """Return the scatter of ratios as if repeats of both sides were paired."""
    return math.hypot(scatter_of_pairs(base), scatter_of_pairs(candidate))


def needed(factor: float, scatter: float, margin: float, cases: int) -> int | None:
    """About how many pairs decide a case whose ``factor`` is what it seems to be, so that with a
    chance of POWER all of so many ``cases`` like it are decided; None for more than MOST: the
    factor lies at the limit."""
    fewest = signed_rank.pairs_needed(cases)
    apart = abs(math.log(factor / (1 - margin)))
    normal = NormalDist()
    level = LEVEL / cases if factor < 1 - margin else LEVEL
    width = (normal.inv_cdf(1 - level) + normal.inv_cdf(POWER ** (1 / cases))) * scatter
    if width**2 > MOST * _EFFICIENCY * apart**2:
        return None
    return fewest if not scatter else max(fewest, math.ceil((width / apart) ** 2 / _EFFICIENCY))
