"""Ratios of pairs: against enumeration and SciPy, and error rates (more: benchmarks/promises)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from framebench.statistics import intervals, signed_rank
from scipy import stats

from .distributions import SAMPLERS, drifting

DRAWS = 4000
#: Two points, as promised, and three standard errors of DRAWS draws.
MARGIN = 0.02 + 3 * (0.95 * 0.05 / DRAWS) ** 0.5
NO_MORE = 0.05 + 3 * (0.95 * 0.05 / DRAWS) ** 0.5


def by_enumeration(logarithms: list[float]) -> float:
    """Return the two-sided p-value from an enumeration of all signs."""
    ranks = stats.rankdata(np.abs(logarithms)) * (np.array(logarithms) != 0)
    actual = abs(float(ranks @ np.sign(logarithms)))
    signs = itertools.product((-1, 1), repeat=len(ranks))
    return float(np.mean([abs(ranks @ np.array(sign)) >= actual - 1e-9 for sign in signs]))


@pytest.mark.parametrize(
    "logarithms",
    [
        [0.3, -0.1, 0.2, 0.5, 0.4, 0.6],
        [0.3, -0.1, 0.2, 0.5, -0.4, 0.6, 0.05, -0.7, 0.8],
        [0.1, 0.1, -0.1, 0.2, 0.2, 0.3, -0.3],  # ties
        [0.0, 0.1, 0.2, -0.3, 0.0, 0.4, 0.5, 0.6],  # ratios of 1
        [0.0, 0.0, 0.0],
        [0.2],
    ],
)
def test_the_p_value_is_that_of_all_signs(logarithms: list[float]) -> None:
    expected = by_enumeration(logarithms)
    assert signed_rank.p_value([math.exp(x) for x in logarithms]) == pytest.approx(expected)
    assert signed_rank.p_value([math.exp(-x) for x in logarithms]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("count", "rank"),
    # ranks of the Walsh averages at the ends at 95 %: from tables of critical values, plus one
    [(6, 1), (10, 9), (20, 53)],
)
def test_the_ends_are_those_of_the_tables(count: int, rank: int) -> None:
    logarithms = [2.0**-index for index in range(count)]
    averages = sorted((a + b) / 2 for n, a in enumerate(logarithms) for b in logarithms[n:])
    low, high = signed_rank.interval([math.exp(x) for x in logarithms]) or (0, 0)
    assert (low, high) == pytest.approx((math.exp(averages[rank - 1]), math.exp(averages[-rank])))


@pytest.mark.parametrize(("cases", "pairs"), [(1, 6), (4, 8), (100, 12)])
def test_more_cases_need_more_pairs_for_one_difference_to_be_shown(cases: int, pairs: int) -> None:
    assert signed_rank.pairs_needed(cases) == pairs
    for count, shown in ((pairs, True), (pairs - 1, False)):
        ratios = [1.1 + index / 100 for index in range(count)]
        p_values = [signed_rank.p_value(ratios)] + [1.0] * (cases - 1)
        assert (intervals.adjusted(p_values)[0] <= 0.05) == shown


def test_the_interval_and_the_test_agree() -> None:
    random = np.random.default_rng(0)
    excluded = 0
    for count, shift in itertools.product((6, 7, 12), np.linspace(0, 1.5, 40)):
        ratios = np.exp(random.normal(shift, 1, count)).tolist()
        low, high = signed_rank.interval(ratios) or (0, 0)
        assert low <= signed_rank.estimate(ratios) <= high
        excluded += not low <= 1 <= high
        assert (signed_rank.p_value(ratios) <= 0.05) == (not low <= 1 <= high)
    assert 20 < excluded < 100


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_interval_covers_the_factor_as_often_as_it_says(name: str) -> None:
    count = 6
    random = np.random.default_rng(0)
    own = SAMPLERS[name](random, (DRAWS, count, 2))
    runs = drifting(random, DRAWS, count) * own
    ratios = (1.05 * runs[..., 1] / runs[..., 0]).tolist()
    actual = [signed_rank.interval(ratio) or (2, 0) for ratio in ratios]
    held = sum(low <= 1.05 <= high for low, high in actual) / DRAWS
    assert abs(held - 0.95) <= MARGIN, f"{held:.3f}"


def test_a_drift_that_both_sides_share_is_not_called_a_difference() -> None:
    runs = drifting(np.random.default_rng(0), DRAWS, 12)
    called = [signed_rank.p_value(run) <= 0.05 for run in (runs[..., 1] / runs[..., 0]).tolist()]
    assert 0.02 <= sum(called) / DRAWS <= NO_MORE
