"""Statistics against hand-computed values, and orders of cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from framebench.statistics import descriptive, repeated_intervals
from framebench.statistics.repeated_intervals import Order
from framebench.statistics.verdicts import verdict


@pytest.mark.parametrize(
    ("fraction", "count"), [(0.5, 11), (0.9, 64), (0.95, 130), (0.99, 662), (0.999, 6636)]
)
def test_percentile_needs_its_samples(fraction: float, count: int) -> None:
    # 64 and 662 are MLPerf's query counts for its single-stream scenario
    assert descriptive.samples_needed(fraction) == count
    values = [float(value) for value in range(1, count + 1)]
    assert descriptive.percentile(values, fraction) == math.ceil(count * fraction)
    assert descriptive.percentile(values[1:], fraction) is None


@pytest.mark.parametrize(
    ("interval", "p_adjusted", "expected"),
    [
        ((1.06, 1.4), 0.05, "faster"),
        ((1.06, 1.4), 0.051, "cannot tell"),
        ((1.0, 1.4), 0.001, "cannot tell"),
        ((0.99, 1.4), 0.001, "cannot tell"),
        ((0.96, 1.04), 0.001, "no difference shown"),
    ],
)
def test_a_side_is_faster_where_rank_test_and_interval_show_it(
    interval: tuple[float, float], p_adjusted: float, expected: str
) -> None:
    ratio = sum(interval) / 2
    assert verdict(ratio, interval, p_adjusted) == expected
    mirrored = verdict(1 / ratio, (1 / interval[1], 1 / interval[0]), p_adjusted)
    assert mirrored == ("slower" if expected == "faster" else expected)


ERROR = 0.05 / 3


def sides(repeats: int, ratio: float) -> tuple[list[float], list[float]]:
    """Return figures of two cases on a machine whose speed differs between rounds of repeats."""
    random = np.random.default_rng(5)
    machine = np.exp(random.normal(0, 0.06, repeats))
    one, other = machine * np.exp(random.normal(0, 0.01, (2, repeats)))
    return [*map(float, ratio * one)], [*map(float, other)]


def order(entry: list[float], other: list[float]) -> Order:
    _, (first, second) = repeated_intervals.orders([entry, other], ERROR)
    actual = first or second
    assert actual is not None
    return actual


@pytest.mark.parametrize(("ratio", "wanted"), [(1.05, Order.SLOWER), (1.0, Order.NO_DIFFERENCE)])
def test_what_the_machine_does_to_a_round_cancels(ratio: float, wanted: Order) -> None:
    one, other = sides(14, ratio)
    assert order(one, other) is wanted
    assert order(one, other[7:] + other[:7]) is Order.OPEN
    low, high = repeated_intervals.ratio_interval(other, one) or (0, 2)
    assert ratio - 0.025 < low < ratio < high < ratio + 0.025


def test_the_first_look_compares_all_repeats_of_both_sides() -> None:
    """The signs of seven pairs cannot show what seven repeats show."""
    one, other = sides(7, 1.3)
    assert order(one, other) is Order.SLOWER
    assert order(one[:6], other[:6]) is Order.OPEN
