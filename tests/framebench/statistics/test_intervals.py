"""Intervals, tests and numbers of repeats: against tables, and simulated coverage.
The full size is in benchmarks/statistical_promises.py."""

from __future__ import annotations

from math import comb
from pathlib import Path

import numpy as np
import pytest
from framebench.statistics import intervals
from scipy import stats

from .distributions import DRIFTS, SAMPLERS, UNDER_DRIFT, drift_table, held_under_drift, true_median

MEASURING = Path(__file__).parents[3] / "docs" / "measuring.md"
DRAWS = 4000
#: Two points, as promised, and three standard errors of DRAWS draws.
MARGIN = 0.02 + 3 * (0.95 * 0.05 / DRAWS) ** 0.5


@pytest.mark.parametrize(
    ("count", "rank"),
    # k of the interval [x(k), x(n+1-k)] at 95 %, from tables of the sign test
    [(6, 1), (7, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10), (40, 14)],
)
def test_ends_lie_between_the_ranks_of_the_sign_test_and_the_next(count: int, rank: int) -> None:
    values = [float(value) for value in range(1, count + 1)]
    low, high = intervals.median_interval(values[::-1]) or (0, 0)
    assert rank <= low < rank + 1
    assert low + high == pytest.approx(count + 1)


@pytest.mark.parametrize(("confidence", "count"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.99, 8)])
def test_too_few_repeats_have_no_interval(confidence: float, count: int) -> None:
    assert intervals.repeats_for_interval(confidence) == count
    assert intervals.median_interval([1.0] * (count - 1), confidence) is None
    assert intervals.median_interval([1.0] * count, confidence) == (1.0, 1.0)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("count", [6, 7, 10, 20])
def test_the_interval_of_a_median_covers_it_as_often_as_it_says(name: str, count: int) -> None:
    draws = SAMPLERS[name](np.random.default_rng(0), (DRAWS, count))
    found = [intervals.median_interval(values) for values in draws.tolist()]
    truth = true_median(name)
    held = sum(low <= truth <= high for low, high in found if low is not None) / DRAWS
    assert abs(held - 0.95) <= MARGIN, f"{held:.3f}"


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("count", [5, 7, 10])
def test_the_interval_of_a_ratio_covers_it_as_often_as_it_says(name: str, count: int) -> None:
    random = np.random.default_rng(0)
    base = SAMPLERS[name](random, (DRAWS, count)).tolist()
    candidate = (1.05 * SAMPLERS[name](random, (DRAWS, count))).tolist()
    found = [intervals.ratio_interval(*pair) for pair in zip(base, candidate, strict=True)]
    held = sum(low <= 1.05 <= high for low, high in found if low is not None) / DRAWS
    assert abs(held - 0.95) <= MARGIN, f"{held:.3f}"


@pytest.mark.parametrize("at", range(len(DRIFTS)))
def test_an_interval_holds_the_truth_as_often_under_drift_as_the_documents_say(at: int) -> None:
    for name, held in held_under_drift(1000, DRIFTS[at]).items():
        assert held == pytest.approx(UNDER_DRIFT[name][at] / 100, abs=0.05), name


def test_the_documents_say_how_often_an_interval_holds_under_drift() -> None:
    assert drift_table() in MEASURING.read_text(), f"docs/measuring.md lacks\n{drift_table()}"


def test_the_interval_of_a_ratio_and_the_test_agree() -> None:
    random = np.random.default_rng(0)
    excluded = 0
    for shift in np.linspace(1.0, 1.03, 60):
        base, candidate = random.normal(100, 1, 7), shift * random.normal(100, 1, 7)
        low, high = intervals.ratio_interval(base.tolist(), candidate.tolist()) or (0, 0)
        excluded += not low <= 1 <= high
        assert (intervals.rank_test(base, candidate) <= 0.05) == (not low <= 1 <= high)
    assert 0 < excluded < 60


@pytest.mark.parametrize(("first", "second"), [(1, 1), (3, 4), (7, 7), (4, 9)])
def test_rank_sums_are_distributed_as_all_orders_say(first: int, second: int) -> None:
    counts = intervals._rank_sums(first, second)
    assert sum(counts) == comb(first + second, first)
    assert counts == counts[::-1]
    base, candidate = np.arange(first) + 1000.0, np.arange(second) + 0.5
    p_value = stats.mannwhitneyu(base, candidate, method="exact").pvalue
    assert p_value == pytest.approx(min(1, 2 * counts[0] / sum(counts)))


def test_four_repeats_on_both_sides_make_an_interval_of_the_ratio() -> None:
    assert intervals.repeats_for_comparison() == 4
    four = [1.0, 1.1, 1.2, 1.3]
    assert intervals.ratio_interval(four, four) is not None
    assert intervals.ratio_interval(four[:3], four[:3]) is None
    assert intervals.ratio_interval([], four) is None


def test_repeats_for_a_width_reach_it() -> None:
    """Fail if the predicted number of repeats does not reach the width on average."""
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
    assert intervals.repeats_for_width([1.0, 1.0], 0.01) == 6  # none is narrower than an interval


def test_of_many_comparisons_of_equals_few_families_call_a_difference() -> None:
    random = np.random.default_rng(0)
    families = 0
    for _ in range(300):
        p_values = [intervals.rank_test(*random.normal(100, 1, (2, 7))) for _ in range(20)]
        families += min(intervals.adjusted(p_values)) <= 0.05
    assert families / 300 <= 0.05 + 3 * (0.05 * 0.95 / 300) ** 0.5


@pytest.mark.parametrize("ties", [False, True])
def test_p_values_are_those_of_scipy(ties: bool) -> None:
    random = np.random.default_rng(0)
    for first, second in ((1, 3), (4, 4), (7, 7), (5, 12)):
        base, candidate = random.normal(0, 1, first), random.normal(1, 1, second)
        if ties:
            base, candidate = base.round(), candidate.round()
        method = "asymptotic" if len({*base, *candidate}) < first + second else "exact"
        expected = stats.mannwhitneyu(base, candidate, method=method).pvalue
        assert intervals.rank_test(base.tolist(), candidate.tolist()) == pytest.approx(expected)


def test_adjusted_p_values_are_those_of_scipy() -> None:
    assert intervals.adjusted([]) == []
    for p_values in ([0.2], [0.01, 0.9, 0.02, 0.02, 0.5], [0.6, 0.9]):
        expected = stats.false_discovery_control(p_values, method="bh").tolist()
        assert intervals.adjusted(p_values) == pytest.approx(expected)


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.5, 95.0])
def test_a_confidence_is_a_part(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        intervals.median_interval([1.0], confidence)
