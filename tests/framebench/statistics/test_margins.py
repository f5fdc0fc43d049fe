"""Claims about a margin: against SciPy, and simulated error rates.
The full size is in benchmarks/statistical_promises.py."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from framebench.statistics import intervals, margins, signed_rank
from scipy import stats

from .distributions import drifting
from .gates import MARGIN, PAIRS, called

FAMILIES = 400


def test_both_one_sided_tests_are_those_of_scipy() -> None:
    random = np.random.default_rng(0)
    for shift in (-0.4, 0.0, 0.4):
        values = random.normal(shift, 1, 12)
        below, above = signed_rank.one_sided(np.exp(values).tolist())
        assert below == pytest.approx(stats.wilcoxon(values, alternative="less").pvalue)
        assert above == pytest.approx(stats.wilcoxon(values, alternative="greater").pvalue)
        base, candidate = random.normal(0, 1, 9), random.normal(shift, 1, 7)
        for values_of in ((base, candidate), (base.round(1), candidate.round(1))):  # also with ties
            first, second = (one.tolist() for one in values_of)
            for p, side in zip(
                intervals.one_sided_rank_test(first, second), ("less", "greater"), strict=True
            ):
                expected = stats.mannwhitneyu(second, first, alternative=side).pvalue
                assert p == pytest.approx(expected)


def test_a_single_case_is_decided_exactly_where_its_interval_lies_on_one_side() -> None:
    random = np.random.default_rng(0)
    decided = 0
    for count, factor in itertools.product((6, 9, 12), np.linspace(0.9, 1.0, 40)):
        ratios = (factor * np.exp(random.normal(0, 0.02, count))).tolist()
        low, high = signed_rank.interval(ratios) or (0, 2)
        claims = margins.of_pairs(ratios, MARGIN)
        assert (claims.beyond <= margins.LEVEL) == (high < 1 - MARGIN)
        assert (claims.within <= margins.LEVEL) == (low > 1 - MARGIN)
        decided += not low <= 1 - MARGIN <= high
        base = (100 * np.exp(random.normal(0, 0.02, count))).tolist()
        candidate = (100 * factor * np.exp(random.normal(0, 0.02, count))).tolist()
        low, high = intervals.ratio_interval(base, candidate) or (0, 2)
        claims = margins.of_sets(base, candidate, MARGIN)
        assert (claims.beyond <= margins.LEVEL) == (high < 1 - MARGIN)
        assert (claims.within <= margins.LEVEL) == (low > 1 - MARGIN)
    assert 40 < decided < 110


def test_adjusting_for_a_family_is_that_of_holm() -> None:
    assert intervals.family_wise([]) == []
    assert intervals.family_wise([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert intervals.family_wise([0.9, 0.8]) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("factors", "pairs", "verdict", "low", "high"),
    [
        ((1.0,) * 20, PAIRS, "beyond", 0, 0.001),  # nothing has changed
        ((1 - MARGIN,) * 20, PAIRS, "beyond", 0, 0.025),  # at the limit: the most false alarms
        ((1.0,) * 19 + (1 - MARGIN,), 30, "within", 0, 0.025),  # passed, though one is not within
        ((1.0,) * 20, 30, "within", 0.9, 1),
        ((1.0,) * 19 + (0.85,), PAIRS, "beyond", 0.9, 1),
    ],
)
def test_a_family_of_cases_is_called_wrongly_no_more_often_than_promised(
    factors: tuple[float, ...], pairs: int, verdict: str, low: float, high: float
) -> None:
    rate = called(np.random.default_rng(0), factors, FAMILIES, pairs)[verdict]
    error = 3 * max((edge * (1 - edge) / FAMILIES) ** 0.5 for edge in (low, high, 0.001))
    assert low - error <= rate <= high + error


def test_as_many_pairs_as_are_said_to_be_needed_decide_four_times_of_five() -> None:
    """Fail if the predicted number of pairs does not decide four of five cases under drift.
    The prediction uses the true scatter of the pairs."""
    random = np.random.default_rng(0)
    for factor in (0.98, 0.92):
        many = drifting(random, 4000, 1)
        scatter = margins.scatter_of_pairs((many[..., 1] / many[..., 0]).ravel().tolist())
        count = margins.needed(factor, scatter, MARGIN, 1)
        assert count
        runs = drifting(random, 400, count)
        decided = [
            min(margins.of_pairs((factor * one[:, 1] / one[:, 0]).tolist(), MARGIN))
            <= margins.LEVEL
            for one in runs
        ]
        assert 0.7 <= np.mean(decided) <= 0.92, f"{count} pairs for {factor}"


def test_a_ratio_at_the_limit_is_decided_by_no_number_of_pairs() -> None:
    assert margins.needed(1 - MARGIN, 0.02, MARGIN, 1) is None
    assert margins.needed(0.9501, 0.02, MARGIN, 1) is None
    assert margins.needed(1.0, 0.0, MARGIN, 20) == signed_rank.pairs_needed(20)
    few, many = (margins.needed(0.9, 0.05, MARGIN, cases) or 0 for cases in (1, 50))
    assert few < many, "a regression among many cases takes more"
    assert math.isclose(margins.LEVEL, 0.025)
