"""Simulated step times of timed regions: steady ones, and ones with a change or a stall."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from framebench.statistics import steady

Steps = Callable[[np.random.Generator, int], np.ndarray]
HANGING_TOGETHER = 0.03  # promised false alarms if neighbours have a correlation of 0.5


def hanging_together(coefficient: float, noise: float) -> Steps:
    """Return a sampler of steps with first-order noise."""

    def draw(random: np.random.Generator, count: int) -> np.ndarray:
        fresh = random.normal(0, noise * np.sqrt(1 - coefficient**2), count)
        fresh[0] = random.normal(0, noise)
        for step in range(1, count):
            fresh[step] += coefficient * fresh[step - 1]
        return 1 + fresh

    return draw


STEADY: dict[str, Steps] = {
    "noisy": lambda random, count: random.normal(1, 0.1, count),
    "hanging together": hanging_together(0.5, 0.05),
    "periodic stalls": lambda random, count: (
        random.normal(1, 0.01, count) + 3.0 * (np.arange(count) % 5 == 4)
    ),
    "two modes": lambda random, count: 1 + 0.2 * (random.random(count) < 0.3),
    "random stalls": lambda random, count: (
        random.normal(1, 0.01, count) + 3.0 * (random.random(count) < 0.1)
    ),
}
#: Step times with one long step, each in different noise.
STALLED: dict[str, Steps] = {
    "single stall": lambda random, count: 1 + 50.0 * (np.arange(count) == count // 3),
    "a step of five times the median": lambda random, count: (
        random.lognormal(0, 0.1, count) * np.where(np.arange(count) == count // 3, 5.0, 1)
    ),
}
#: Step times without a stall, however long the longest, and promised rate of false alarms.
UNSTALLED: dict[str, tuple[Steps, float]] = {
    "noisy": (STEADY["noisy"], 0.001),
    "periodic stalls": (STEADY["periodic stalls"], 0.0),
    "very skewed": (lambda random, count: random.lognormal(0, 0.6, count), 0.01),
}
NOT_STEADY: dict[str, Steps] = {
    "step of 5 %": lambda random, count: (
        random.normal(1, 0.01, count) * np.where(np.arange(count) < 0.4 * count, 1.05, 1)
    ),
    "ramp of 5 %": lambda random, count: (
        random.normal(1, 0.005, count) * np.linspace(1, 1.05, count)
    ),
    "a step of 10 % among stalls": lambda random, count: (
        random.normal(1, 0.01, count) * np.where(np.arange(count) < 0.6 * count, 1, 1.1)
        + 3.0 * (np.arange(count) % 10 == 9)
    ),
}


def called(draw: Steps, count: int, draws: int) -> float:
    """Return the fraction of regions called unsteady by a test: a change, or a slow start.
    The rule about a single stall is not a statistical test."""
    random = np.random.default_rng(0)
    actual = 0
    for _ in range(draws):
        seconds = draw(random, count).tolist()
        change = steady.change(seconds)
        actual += bool((change and change.matters) or steady.slow_start(seconds))
    return actual / draws
