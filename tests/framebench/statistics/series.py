"""Simulated series of result sets: logarithms of figures with first-order noise between sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from framebench.statistics import change_points

#: Standard deviation between sets, and size of a jump.
NOISE, STEP = 0.01, 0.06

#: Largest fraction of steady series that are called changed, by the correlation of the noise.
STEADY_CALLED = {0.0: 0.02, 0.3: 0.02, 0.6: 0.05}

#: Largest fraction of unchanged series that are called changed if their noise changes its size, by
#: the correlation of the noise.
CHANGING_NOISE_CALLED = {0.0: 0.05, 0.3: 0.06, 0.6: 0.17}

Draw = Callable[[np.random.Generator, int, float], np.ndarray]


def steady_series(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    return NOISE * change_points.noise(random, 1, points, related)[0]


def jumping(size: float, last: int) -> Draw:
    """Return a sampler of series with a jump by ``size`` before the ``last`` points."""

    def draw(random: np.random.Generator, points: int, related: float) -> np.ndarray:
        return steady_series(random, points, related) + size * (np.arange(points) >= points - last)

    return draw


def changing_noise(size: float, first: float, last: float) -> Draw:
    """Return a sampler of series whose noise has another ``size`` from ``first`` to ``last``."""

    def draw(random: np.random.Generator, points: int, related: float) -> np.ndarray:
        position = (np.arange(points) + 0.5) / points
        sizes = np.where((position > first) & (position < last), size, 1.0)
        return steady_series(random, points, related) * sizes

    return draw


def heavy_tails(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series with noise of Student's distribution, 3 degrees of freedom."""
    return steady_series(random, points, related) * np.sqrt(3 / random.chisquare(3, points))


def called(draw: Draw, points: int, related: float, series: int) -> float:
    """Return the fraction of series that are called changed."""
    random = np.random.default_rng(points)
    drawn = [np.exp(draw(random, points, related)).tolist() for _ in range(series)]
    return sum(bool(change_points.changes(values)) for values in drawn) / series
