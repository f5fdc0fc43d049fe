"""Claims about a margin, and one-sided rank tests: against SciPy and against intervals."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.statistics import intervals, margins, signed_rank
from scipy import stats

MARGIN = 0.05


def test_both_one_sided_tests_are_those_of_scipy() -> None:
    random = np.random.default_rng(0)
    for shift in (-0.4, 0.0, 0.4):
        values = random.normal(shift, 1, 12)
        below, above = signed_rank.one_sided(np.exp(values).tolist())
        assert below == pytest.approx(stats.wilcoxon(values, alternative="less").pvalue)
        assert above == pytest.approx(stats.wilcoxon(values, alternative="greater").pvalue)
        base, candidate = random.normal(0, 1, 9), random.normal(shift, 1, 7)
        for values_of in ((base, candidate), (base.round(1), candidate.round(1))):  # also with ties
            first, second = (array.tolist() for array in values_of)
            for p, side in zip(
                intervals.one_sided_rank_test(first, second), ("less", "greater"), strict=True
            ):
                expected = stats.mannwhitneyu(second, first, alternative=side).pvalue
                assert p == pytest.approx(expected)


def test_a_single_case_is_decided_exactly_where_its_interval_lies_on_one_side() -> None:
    random = np.random.default_rng(0)
    decided = 0
    for factor in np.linspace(0.9, 1.0, 60):
        base = (100 * np.exp(random.normal(0, 0.02, 9))).tolist()
        candidate = (100 * factor * np.exp(random.normal(0, 0.02, 9))).tolist()
        low, high = intervals.moses_interval(base, candidate) or (0, 2)
        claims = margins.of_sets(base, candidate, MARGIN)
        assert (claims.beyond <= margins.LEVEL) == (high < 1 - MARGIN)
        assert (claims.within <= margins.LEVEL) == (low > 1 - MARGIN)
        decided += not low <= 1 - MARGIN <= high
    assert 20 < decided < 55


def test_adjusting_for_a_family_is_that_of_holm() -> None:
    assert intervals.family_wise([]) == []
    assert intervals.family_wise([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert intervals.family_wise([0.9, 0.8]) == [1.0, 1.0]
