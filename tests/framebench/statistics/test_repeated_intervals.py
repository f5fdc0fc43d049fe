"""Orders of cases whose repeats are added until the order is settled."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.statistics import repeated_intervals
from framebench.statistics.repeated_intervals import Order

ERROR = 0.05 / 3


def sides(repeats: int, ratio: float) -> tuple[list[float], list[float]]:
    """Return figures of two cases on a machine whose speed is another in each round of repeats."""
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
    """Fail if repeats that followed each other are not compared with each other."""
    one, other = sides(14, ratio)
    assert order(one, other) is wanted
    assert order(one, other[7:] + other[:7]) is Order.OPEN
    low, high = repeated_intervals.ratio_interval(other, one) or (0, 2)
    assert ratio - 0.025 < low < ratio < high < ratio + 0.025


def test_the_first_look_compares_all_repeats_of_both_sides() -> None:
    """Fail if a lead that seven repeats show takes more: seven pairs have too few signs for it."""
    one, other = sides(7, 1.3)
    assert order(one, other) is Order.SLOWER
    assert order(one[:6], other[:6]) is Order.OPEN
