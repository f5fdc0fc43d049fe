"""Statistics against values worked out by hand, and against the defects of other benchmarks."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from framebench import statistics


def test_median_of_an_odd_number_is_the_middle_value() -> None:
    assert statistics.median([3.0, 1.0, 2.0]) == 2.0


def test_median_of_an_even_number_is_the_mean_of_the_two_middle_values() -> None:
    # DLPerf, PaddlePaddle fp32 1n1g: printed as 352.72
    repeats = [354.32, 352.08, 354.71, 353.04, 352.39, 352.07]
    assert statistics.median(repeats) == pytest.approx(352.715, abs=1e-9)


def test_no_values_have_no_median_rather_than_zero() -> None:
    with pytest.raises(ValueError, match="no median"):
        statistics.median([])


def test_throughput_is_samples_over_time_and_not_the_mean_of_rates() -> None:
    # SuperBench's defect: one stalled step of ten hardly moves the mean of per-step rates.
    batch, steps = 8, [0.4] * 9 + [6.48]
    right = statistics.throughput(batch * len(steps), math.fsum(steps))
    mean_of_rates = sum(batch / step for step in steps) / len(steps)
    assert right == pytest.approx(7.936, abs=1e-3)
    assert mean_of_rates > 2 * right


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_no_time_gives_no_throughput(seconds: float) -> None:
    with pytest.raises(ValueError, match="no throughput"):
        statistics.throughput(10, seconds)


@pytest.mark.parametrize(
    ("count", "ranks"),
    # k of the interval [x(k), x(n+1-k)] at 95 %, from tables of the sign test
    [(6, 1), (7, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (30, 10), (40, 14)],
)
def test_interval_of_the_median_takes_the_ranks_of_the_sign_test(count: int, ranks: int) -> None:
    values = [float(value) for value in range(1, count + 1)]
    low, high = statistics.median_confidence_interval(list(reversed(values))) or (0, 0)
    assert (low, high) == (ranks, count + 1 - ranks)


def test_interval_of_the_median_covers_at_least_what_it_says() -> None:
    # All 2**n sides of the median are equally likely: count those in which the interval holds it.
    for count in range(6, 13):
        values = [float(value) for value in range(1, count + 1)]
        low, _ = statistics.median_confidence_interval(values) or (0, 0)
        held = sum(
            low <= sum(sides) <= count - low for sides in itertools.product((0, 1), repeat=count)
        )
        assert Fraction(held, 2**count) >= Fraction("0.95"), count


@pytest.mark.parametrize("count", range(6))
def test_too_few_repeats_have_no_interval(count: int) -> None:
    assert statistics.median_confidence_interval([1.0] * count) is None


@pytest.mark.parametrize(("confidence", "count"), [(0.5, 2), (0.9, 5), (0.95, 6), (0.99, 8)])
def test_repeats_needed_is_where_the_interval_begins(confidence: float, count: int) -> None:
    assert statistics.repeats_needed(confidence) == count
    values = [float(value) for value in range(count)]
    assert statistics.median_confidence_interval(values, confidence) == (0, count - 1)
    assert statistics.median_confidence_interval(values[1:], confidence) is None


@pytest.mark.parametrize(
    ("fraction", "count"), [(0.5, 2), (0.9, 10), (0.95, 20), (0.99, 100), (0.999, 1000)]
)
def test_percentile_needs_its_samples(fraction: float, count: int) -> None:
    assert statistics.samples_needed(fraction) == count
    values = [float(value) for value in range(1, count + 1)]
    assert statistics.percentile(values, fraction) == count * fraction
    assert statistics.percentile(values[1:], fraction) is None


def test_ten_steps_have_no_95th_percentile() -> None:
    # SuperBench prints p95 = p99 = p99.9 = the maximum of ten steps, unmarked.
    steps = [0.1] * 9 + [9.9]
    assert [statistics.percentile(steps, p) for p in (0.95, 0.99, 0.999)] == [None] * 3


def test_percentile_is_a_value_that_occurred_and_rises() -> None:
    values = [float(value % 37) for value in range(200)]
    found = [statistics.percentile(values, p) for p in (0.5, 0.9, 0.95, 0.99)]
    assert all(value in values for value in found)
    assert found == sorted(found, key=lambda value: value or 0)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 99.0])
def test_a_percentile_is_asked_for_as_a_fraction(fraction: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        statistics.percentile([1.0], fraction)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_a_confidence_is_asked_for_as_a_fraction(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        statistics.median_confidence_interval([1.0], confidence)
    with pytest.raises(ValueError, match="between 0 and 1"):
        statistics.repeats_needed(confidence)
