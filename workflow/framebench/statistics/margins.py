"""Test whether the factor between two sets of repeats lies beyond a margin or within it.

Each claim must be shown. If neither is, more measurements are needed. The claim "not slower by more
than the margin" is a test of non-inferiority, one half of Schuirmann's two one-sided tests. The
claim "slower by more than the margin" singles out cases among many, and is adjusted
(:func:`intervals.family_wise`).

Source: Schuirmann, "A Comparison of the Two One-Sided Tests Procedure and the Power Approach",
*Journal of Pharmacokinetics and Biopharmaceutics* 15, 1987.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from . import intervals

#: One-sided level: a single case is decided exactly where its whole 95 % interval lies on one side
#: of the limit.
LEVEL = (1 - intervals.CONFIDENCE) / 2


class Claims(NamedTuple):
    """Unadjusted p-values of both claims about one case."""

    beyond: float
    within: float


def of_sets(base: Sequence[float], candidate: Sequence[float], margin: float) -> Claims:
    """Test the claims on the repeats of two sets; higher is better. ``margin``: a fraction."""
    limit = [(1 - margin) * value for value in base]
    return Claims(*intervals.one_sided_rank_test(limit, candidate))
