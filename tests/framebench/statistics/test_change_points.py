"""Changes of a series: error rates (all of them in benchmarks/promises), and single examples."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from framebench.statistics import change_points

from .series import (
    CHANGING_NOISE_CALLED,
    NOISE,
    STEADY_CALLED,
    STEP,
    Draw,
    called,
    changing_noise,
    heavy_tails,
    jumping,
    steady_series,
)

SERIES = 100


def error(rate: float, draws: int = SERIES) -> float:
    return 3 * (rate * (1 - rate) / draws) ** 0.5


@pytest.mark.parametrize("points", [10, 40])
@pytest.mark.parametrize("related", [0.0, 0.6])
def test_a_series_without_a_change_is_said_to_have_none(points: int, related: float) -> None:
    most = STEADY_CALLED[related]
    assert called(steady_series, points, related, SERIES) <= most + error(most)


@pytest.mark.parametrize("related", [0.0, 0.6])
@pytest.mark.parametrize("draw", [changing_noise(5, 0.8, 1), heavy_tails])
def test_noise_that_changes_its_size_is_seldom_a_change(draw: Draw, related: float) -> None:
    most = CHANGING_NOISE_CALLED[related]
    for points in (10, 40):
        assert called(draw, points, related, SERIES) <= most + error(most), points


def test_a_jump_is_found_where_it_is() -> None:
    assert called(jumping(STEP, 10), 20, 0.0, SERIES) > 0.95
    random = np.random.default_rng(0)
    places = Counter(
        change.at
        for _ in range(50)
        for change in change_points.changes(np.exp(jumping(STEP, 10)(random, 20, 0.0)).tolist())
    )
    assert places[10] > 40, places


def test_of_many_series_each_must_show_more() -> None:
    values = np.exp(jumping(STEP, 7)(np.random.default_rng(3), 14, 0.0) / 1.6).tolist()
    (alone,) = change_points.changes(values)
    enough = int(change_points.LEVEL / alone.p_value)
    assert change_points.changes(values, enough)
    assert not change_points.changes(values, 10 * enough + 10)


def test_of_a_long_series_the_latest_points_are_looked_at() -> None:
    values = NOISE * np.random.default_rng(0).normal(0, 1, change_points.MOST + 50)
    values[30:] += STEP
    assert change_points.changes(np.exp(values).tolist()) == []
    values[200:] += STEP
    (actual,) = change_points.changes(np.exp(values).tolist())
    assert (actual.start, actual.at, actual.end) == (50, 200, len(values))


def test_too_few_points_and_equal_ones_say_nothing() -> None:
    assert change_points.changes([]) == []
    assert change_points.changes([1.0] * 4 + [9.0] * 5) == []
    assert change_points.changes([3.0] * 30) == []
