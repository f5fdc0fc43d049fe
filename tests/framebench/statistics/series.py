"""Series of result sets as they may be: logarithms of figures whose noise hangs together from set
to set (first order), as what a machine does from one day to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from framebench.statistics import change_points

#: Standard deviation from set to set; a jump and, over a whole series, a drift.
NOISE, STEP, RISE = 0.01, 0.06, 0.1

#: In which part of series a drift is said to have a jump, at most, by how the noise hangs together.
DRIFTS_CALLED_JUMPS = {0.0: 0.05, 0.3: 0.05, 0.6: 0.1}

#: In which part of series of 20 sets a jump of FOUR standard deviations is found to be a change.
FOUR = 4
FOUND = {0.0: 0.96, 0.3: 0.78, 0.6: 0.65}

Draw = Callable[[np.random.Generator, int, float], np.ndarray]


def steady_series(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    return NOISE * change_points.noise(random, 1, points, related)[0]


def jumping(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """A jump in the middle."""
    return steady_series(random, points, related) + STEP * (np.arange(points) >= points // 2)


def small_jump(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """A jump of FOUR standard deviations in the middle."""
    step = FOUR * NOISE * (np.arange(points) >= points // 2)
    return steady_series(random, points, related) + step


def drifting(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """A straight rise from the first point to the last."""
    return steady_series(random, points, related) + np.linspace(0, RISE, points)


def called(draw: Draw, points: int, related: float, series: int) -> dict[str, float]:
    """In which part of so many series which kinds of changes are found, or ``none``."""
    random = np.random.default_rng(points)
    found: Counter[str] = Counter()
    for _ in range(series):
        kinds = {
            one.kind
            for one in change_points.changes(np.exp(draw(random, points, related)).tolist())
        }
        found[", ".join(sorted(kinds)) or "none"] += 1
    return {name: count / series for name, count in found.items()}
