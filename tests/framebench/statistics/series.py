"""Simulated series of result sets: logarithms of figures with first-order noise between sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from framebench.statistics import change_points

#: Standard deviation between sets; size of a jump, and of a drift over a whole series.
NOISE, STEP, RISE = 0.01, 0.06, 0.1

#: Largest fraction of drifts that are called a jump, by the correlation of the noise.
DRIFTS_CALLED_JUMPS = {0.0: 0.05, 0.3: 0.05, 0.6: 0.1}

#: Fraction of series of 20 sets in which a jump of FOUR standard deviations is found.
FOUR = 4
FOUND = {0.0: 0.96, 0.3: 0.78, 0.6: 0.65}

Draw = Callable[[np.random.Generator, int, float], np.ndarray]


def steady_series(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    return NOISE * change_points.noise(random, 1, points, related)[0]


def jumping(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series with a jump in the middle."""
    return steady_series(random, points, related) + STEP * (np.arange(points) >= points // 2)


def small_jump(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series with a jump of FOUR standard deviations in the middle."""
    step = FOUR * NOISE * (np.arange(points) >= points // 2)
    return steady_series(random, points, related) + step


def drifting(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series with a straight rise from the first point to the last."""
    return steady_series(random, points, related) + np.linspace(0, RISE, points)


def called(draw: Draw, points: int, related: float, series: int) -> dict[str, float]:
    """Return the fraction of series with each combination of changes, or ``none``."""
    random = np.random.default_rng(points)
    found: Counter[str] = Counter()
    for _ in range(series):
        kinds = {
            one.kind
            for one in change_points.changes(np.exp(draw(random, points, related)).tolist())
        }
        found[", ".join(sorted(kinds)) or "none"] += 1
    return {name: count / series for name, count in found.items()}
