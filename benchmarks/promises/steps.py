"""Steady and unsteady timed regions, and stalls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import steady

from tests.framebench.statistics import steps as telling
from tests.framebench.statistics.steps import HANGING_TOGETHER, STALLED, Steps, called

from .row import PromiseRow

COUNTS = (20, 50, 100, 500)
STEADY: dict[str, Steps] = {
    **telling.STEADY,
    "quiet": lambda random, count: random.normal(1, 0.005, count),
    "skewed": lambda random, count: random.lognormal(0, 0.1, count),
    "many random stalls": lambda random, count: (
        random.normal(1, 0.01, count) + 3.0 * (random.random(count) < 0.25)
    ),
}
#: Steady steps that were not used to choose a method.
KEPT_ASIDE: dict[str, Steps] = {
    "random stalls, the rest alike": lambda random, count: 1 + 3.0 * (random.random(count) < 0.15),
    "a tail of Pareto's": lambda random, count: 1 + 0.05 * random.pareto(1.5, count),
    "two noises": lambda random, count: (
        random.normal(1, 0.005, count) + random.normal(0, 0.2, count) * (random.random(count) < 0.2)
    ),
}
#: Step times without a stall, however long the longest, and promised rate of false alarms.
UNSTALLED: dict[str, tuple[Steps, float]] = {
    **telling.UNSTALLED,
    "two modes": (STEADY["two modes"], 0.001),
    "skewed": (lambda random, count: random.lognormal(0, 0.3, count), 0.001),
    "exponential tail": (lambda random, count: 1 + random.exponential(0.2, count), 0.001),
}
NOT_STEADY: dict[str, Steps] = {
    **telling.NOT_STEADY,
    "step of 5 % in noise": lambda random, count: (
        random.normal(1, 0.02, count) * np.where(np.arange(count) < 0.5 * count, 1, 1.05)
    ),
    "caches that fill": lambda random, count: (
        random.normal(1, 0.01, count) * (1 + 0.3 * np.exp(-np.arange(count) / (0.2 * count)))
    ),
}


def fading(size: float, noise: float) -> Steps:
    """Return a sampler with a start slower by ``size``, decaying over a fifth of the region."""

    def draw(random: np.random.Generator, count: int) -> np.ndarray:
        excess = size * np.exp(-np.arange(count) / (0.2 * count))
        return random.normal(1, noise, count) * (1 + excess)

    return draw


#: Changes in docs/methods.md, and percent of regions of COUNTS steps in which each is found.
POWER: dict[str, tuple[Steps, tuple[int, ...]]] = {
    "a step of 5 % halfway, 1 % noise": (
        lambda random, count: (
            random.normal(1, 0.01, count) * np.where(np.arange(count) < count // 2, 1, 1.05)
        ),
        (99, 100, 100, 100),
    ),
    "a drift of 5 %, 1 % noise": (
        lambda random, count: random.normal(1, 0.01, count) * np.linspace(1, 1.05, count),
        (68, 100, 100, 100),
    ),
    "a start 30 % slower, 1 % noise": (fading(0.3, 0.01), (100, 100, 100, 100)),
    "a start 20 % slower, 0.1 % noise": (fading(0.2, 0.001), (100, 100, 100, 100)),
    "one step of 20 times the others, 10 % noise": (
        lambda random, count: (
            random.lognormal(0, 0.1, count) * np.where(np.arange(count) == count // 3, 20.0, 1)
        ),
        (100, 100, 100, 100),
    ),
    "a middle third 5 % slower, 1 % noise": (
        lambda random, count: (
            random.normal(1, 0.01, count)
            * np.where(np.abs(np.arange(count) + 0.5 - count / 2) < count / 6, 1.05, 1)
        ),
        (100, 100, 100, 100),
    ),
    "two first steps 50 % slower, 1 % noise": (
        lambda random, count: (
            random.normal(1, 0.01, count) * np.where(np.arange(count) < 2, 1.5, 1)
        ),
        (100, 19, 0, 0),
    ),
    "a saw tooth of two teeth of 10 %, 1 % noise": (
        lambda random, count: (
            random.normal(1, 0.01, count) * (1 + 0.1 * (2 * np.arange(count) / count % 1))
        ),
        (0, 0, 61, 100),
    ),
    "nothing: independent, 10 % noise": (STEADY["noisy"], (0, 0, 1, 1)),
    "nothing: correlation of 0.5, 5 % noise": (STEADY["hanging together"], (2, 3, 2, 1)),
    "nothing: one step in ten stalls, at random": (STEADY["random stalls"], (29, 2, 0, 0)),
}


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about step times."""
    named = {**STEADY, **{f"{name} (kept aside)": entry for name, entry in KEPT_ASIDE.items()}}
    fewer = draws // 10
    for name, draw in named.items():
        most = HANGING_TOGETHER if name == "hanging together" else steady.SIGNIFICANCE
        for count in (20, 50, 100, 500):
            promise = f"steady, called changed or slow at the start, {count} steps"
            yield PromiseRow(promise, name, called(draw, count, fewer), fewer, 0, most)
    for name, draw in NOT_STEADY.items():
        for count in (100, 500):
            found = _unsteady(draw, count, fewer)
            yield PromiseRow(f"unsteady, {count} steps", name, found, fewer, 0.9, 1)
    for name, (draw, percent) in POWER.items():
        for count, part in zip(COUNTS, percent, strict=True):
            found, goal = _unsteady(draw, count, fewer), part / 100
            low, high = max(0.0, goal - 0.02), min(1.0, goal + 0.02)
            yield PromiseRow(f"`unsteady`, {count} steps", name, found, fewer, low, high)
    yield from _stalls(draws)


def _unsteady(draw: Steps, count: int, draws: int) -> float:
    random = np.random.default_rng(0)
    windows = (draw(random, count).tolist() for _ in range(draws))
    return float(np.mean([bool(steady.unsteady(window)) for window in windows]))


def _stalls(draws: int) -> Iterator[PromiseRow]:
    promises = {name: (draw, 0.98, 1.0) for name, draw in STALLED.items()}
    promises |= {name: (draw, 0.0, most) for name, (draw, most) in UNSTALLED.items()}
    for name, (draw, low, high) in promises.items():
        for count in (16, 30, 100):
            random = np.random.default_rng(0)
            windows = (draw(random, count).tolist() for _ in range(draws))
            found = float(np.mean([steady.stall(window) is not None for window in windows]))
            yield PromiseRow(f"a single stall, {count} steps", name, found, draws, low, high)
