"""Outliers and modes among repeats: planted ones are found, with few false ones."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.statistics import shape

from .distributions import SAMPLERS


def rate(kind: str, count: int, draws: int = 1000) -> tuple[float, float]:
    """Return the fractions of sets of repeats with an outlier, and with two modes."""
    sets = SAMPLERS[kind](np.random.default_rng(0), (draws, count)).tolist()
    apart = sum(bool(shape.outliers(values)) for values in sets) / draws
    return apart, sum(shape.modes(values) is not None for values in sets) / draws


@pytest.mark.parametrize("count", [6, 20])
def test_few_normal_repeats_are_called_odd(count: int) -> None:
    apart, two = rate("normal", count)
    assert apart <= shape.SIGNIFICANCE + 0.01
    assert two <= shape.SIGNIFICANCE + 0.01


def test_a_repeat_that_stands_apart_is_named() -> None:
    random = np.random.default_rng(0)
    for index in range(7):
        values = random.normal(100, 0.3, 7)
        values[index] = 90
        assert shape.outliers(values.tolist()) == [index]
        assert shape.modes(values.tolist()) is None


@pytest.mark.parametrize(("slow", "fast"), [(2, 5), (10, 4)])
def test_two_modes_are_found(slow: int, fast: int) -> None:
    random = np.random.default_rng(0)
    actual = 0
    for _ in range(200):
        lower, upper = random.normal(95, 0.3, slow), random.normal(100, 0.3, fast)
        values = random.permutation(np.concatenate([lower, upper])).tolist()
        both = shape.modes(values)
        actual += both == (sorted(lower), sorted(upper))
        assert both is None or shape.outliers(values) == []
    assert actual >= 190


def test_modes_too_near_to_matter_are_one() -> None:
    assert shape.modes([100.0, 100.1, 100.05, 101.0, 101.1, 101.05]) is None
    assert shape.modes([100.0, 100.1, 100.05, 110.0, 110.1, 110.05]) is not None


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [1.0, 1.0, 9.0, 9.0, 9.0], [5.0] * 8])
def test_too_few_or_equal_values_show_nothing(values: list[float]) -> None:
    assert shape.outliers(values) == []
    assert shape.modes(values) is None


def test_spread_is_a_part_of_the_median() -> None:
    assert shape.spread([90.0, 100.0, 120.0]) == pytest.approx(0.3)
    assert shape.spread([90.0]) is None
