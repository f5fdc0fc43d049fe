"""Intervals, tests and numbers of repeats, of two sets and of pairs: against tables, enumeration
and SciPy, and simulated coverage and error rates (in full size in benchmarks/promises)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from framebench.statistics import intervals
from scipy import stats

from .distributions import SAMPLERS, UNLIKE, Sampler, called_under_drift, pairs_held, ratio_held

DRAWS = 2000
#: Three standard errors of a coverage of 95 % in DRAWS draws.
ERROR = 3 * (0.95 * 0.05 / DRAWS) ** 0.5
PAIR_DRAWS = 4000
#: Two points, as promised, and three standard errors of PAIR_DRAWS draws.
MARGIN = 0.02 + 3 * (0.95 * 0.05 / PAIR_DRAWS) ** 0.5
NO_MORE = 0.05 + 3 * (0.95 * 0.05 / PAIR_DRAWS) ** 0.5
ALIKE = {name: (sampler, sampler) for name, sampler in SAMPLERS.items()}
RATIOS = {**ALIKE, **UNLIKE}


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("count", [5, 6, 40])
def test_the_interval_of_a_median_is_that_of_scipy(count: int, confidence: float) -> None:
    values = np.random.default_rng(count).normal(100, 1, count).tolist()
    expected = stats.quantile_test(values, p=0.5).confidence_interval(confidence)
    actual = intervals.median_interval(values, confidence)
    assert actual == (None if np.isnan(expected.low) else (expected.low, expected.high))


@pytest.mark.parametrize("sides", RATIOS.items(), ids=lambda entry: entry[0])
def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says(
    sides: tuple[str, tuple[Sampler, Sampler]],
) -> None:
    assert ratio_held(sides[1], (7, 7), DRAWS) >= 0.95 - ERROR


def test_the_interval_of_a_ratio_combines_the_intervals_of_both_medians() -> None:
    """If one side has no spread, the ratio's interval must be the other side's, divided by 50."""
    values = np.random.default_rng(0).normal(100, 1, 7).tolist()
    own = intervals.median_interval(values)
    assert own
    assert intervals.ratio_interval([50.0] * 7, values) == pytest.approx([end / 50 for end in own])
    there, back = (
        intervals.ratio_interval(*sides) for sides in ((values, [60.0] * 7), ([60.0] * 7, values))
    )
    assert there
    assert back
    assert there == pytest.approx([1 / back[1], 1 / back[0]])
    low, high = intervals.ratio_interval(values, values) or (0, 0)
    assert low < own[0] / own[1] ** 0.5 / np.median(values) ** 0.5 < 1 < high


def test_the_interval_of_moses_and_the_test_agree() -> None:
    random = np.random.default_rng(0)
    excluded = 0
    for shift in np.linspace(1.0, 1.03, 60):
        base, candidate = random.normal(100, 1, 7), shift * random.normal(100, 1, 7)
        low, high = intervals.moses_interval(base.tolist(), candidate.tolist()) or (0, 0)
        excluded += not low <= 1 <= high
        assert (intervals.rank_test(base, candidate) <= 0.05) == (not low <= 1 <= high)
    assert 0 < excluded < 60


def test_repeats_for_a_width_reach_it() -> None:
    random = np.random.default_rng(0)
    sets = random.normal(100, 1, (200, 7)).tolist()
    said = [intervals.repeats_for_width(values, 0.01) for values in sets]
    needed = int(np.median([count for count in said if count]))
    widths = []
    for _ in range(200):
        values = random.normal(100, 1, needed).tolist()
        low, high = intervals.median_interval(values) or (0, 0)
        widths.append((high - low) / np.median(values))
    assert np.median(widths) == pytest.approx(0.01, rel=0.25)
    assert intervals.repeats_for_width([1.0], 0.01) is None
    assert intervals.repeats_for_width([1.0, 1.0], 0.01) == 6  # fewer repeats have no interval


@pytest.mark.parametrize("ties", [False, True])
def test_p_values_are_those_of_scipy(ties: bool) -> None:
    random = np.random.default_rng(0)
    for first, second in ((1, 3), (4, 4), (7, 7), (5, 12)):
        base, candidate = random.normal(0, 1, first), random.normal(1, 1, second)
        if ties:
            base, candidate = base.round(), candidate.round()
        method = "asymptotic" if len({*base, *candidate}) < first + second else "exact"
        sides = (base.tolist(), candidate.tolist())
        expected = stats.mannwhitneyu(base, candidate, method=method).pvalue
        assert intervals.rank_test(*sides) == pytest.approx(expected)
        for p, side in zip(intervals.one_sided_rank_test(*sides), ("less", "greater"), strict=True):
            alone = stats.mannwhitneyu(candidate, base, method=method, alternative=side).pvalue
            assert p == pytest.approx(alone)


def test_adjusting_for_a_family_is_that_of_holm() -> None:
    assert intervals.family_wise([]) == []
    assert intervals.family_wise([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert intervals.family_wise([0.9, 0.8]) == [1.0, 1.0]


def test_adjusted_p_values_are_those_of_scipy() -> None:
    assert intervals.adjusted([]) == []
    for p_values in ([0.2], [0.01, 0.9, 0.02, 0.02, 0.5], [0.6, 0.9]):
        expected = stats.false_discovery_control(p_values, method="bh").tolist()
        assert intervals.adjusted(p_values) == pytest.approx(expected)


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
    assert intervals.signed_rank_test([math.exp(x) for x in logarithms]) == pytest.approx(expected)
    assert intervals.signed_rank_test([math.exp(-x) for x in logarithms]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("count", "rank"),
    # ranks of the Walsh averages at the ends at 95 %: from tables of critical values, plus one
    [(6, 1), (10, 9), (20, 53)],
)
def test_the_ends_for_pairs_are_those_of_the_tables(count: int, rank: int) -> None:
    logarithms = [2.0**-index for index in range(count)]
    averages = sorted((a + b) / 2 for n, a in enumerate(logarithms) for b in logarithms[n:])
    low, high = intervals.signed_rank_interval([math.exp(x) for x in logarithms]) or (0, 0)
    assert (low, high) == pytest.approx((math.exp(averages[rank - 1]), math.exp(averages[-rank])))


@pytest.mark.parametrize(("cases", "pairs"), [(1, 6), (4, 8), (100, 12)])
def test_more_cases_need_more_pairs_for_one_difference_to_be_shown(cases: int, pairs: int) -> None:
    assert intervals.pairs_needed(cases) == pairs
    for count, shown in ((pairs, True), (pairs - 1, False)):
        ratios = [1.1 + index / 100 for index in range(count)]
        p_values = [intervals.signed_rank_test(ratios)] + [1.0] * (cases - 1)
        assert (intervals.adjusted(p_values)[0] <= 0.05) == shown


def test_the_interval_and_the_test_of_pairs_agree() -> None:
    random = np.random.default_rng(0)
    excluded = 0
    for count, shift in itertools.product((6, 7, 12), np.linspace(0, 1.5, 40)):
        ratios = np.exp(random.normal(shift, 1, count)).tolist()
        low, high = intervals.signed_rank_interval(ratios) or (0, 0)
        assert low <= intervals.signed_rank_estimate(ratios) <= high
        excluded += not low <= 1 <= high
        assert (intervals.signed_rank_test(ratios) <= 0.05) == (not low <= 1 <= high)
    assert 20 < excluded < 100


@pytest.mark.parametrize("name", SAMPLERS)
def test_the_interval_covers_the_factor_as_often_as_it_says(name: str) -> None:
    held = pairs_held((SAMPLERS[name], SAMPLERS[name]), 6, PAIR_DRAWS)
    assert abs(held - 0.95) <= MARGIN, f"{held:.3f}"


def test_a_drift_that_both_sides_share_is_not_called_a_difference() -> None:
    assert 0.02 <= called_under_drift(1.0, 12, PAIR_DRAWS) <= NO_MORE
