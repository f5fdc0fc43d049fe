"""Steady and unsteady timed regions, and stalls."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from framebench.statistics import steady

from tests.framebench.statistics import steps as telling
from tests.framebench.statistics.steps import HANGING_TOGETHER, STALLED, Steps, called

from . import PromiseRow, near

COUNTS = (20, 50, 100, 500)
STEADY: dict[str, Steps] = {
    **telling.STEADY,
    "a Pareto tail (held out)": lambda random, count: 1 + 0.05 * random.pareto(1.5, count),
}
#: Step times that have no stall in spite of long steps, and the promised rate of false alarms.
UNSTALLED: dict[str, tuple[Steps, float]] = {
    **telling.UNSTALLED,
    "two modes": (STEADY["two modes"], 0.001),
    "exponential tail": (lambda random, count: 1 + random.exponential(0.2, count), 0.001),
}


def changing(factors: Callable[[np.ndarray, int], np.ndarray], noise: float = 0.01) -> Steps:
    """Return a sampler of steps: normal noise times ``factors`` of step indices and step count."""
    return lambda random, count: random.normal(1, noise, count) * factors(np.arange(count), count)


def fading(size: float) -> Callable[[np.ndarray, int], np.ndarray]:
    """Return factors of a start that is slower by ``size``, decaying over a fifth of the region."""
    return lambda step, count: 1 + size * np.exp(-step / (0.2 * count))


#: Changes of step times (see docs/methods.md), and how often each is found, in percent, in timed
#: regions of COUNTS steps.
POWER: dict[str, tuple[Steps, tuple[int, ...]]] = {
    "a step of 5 % halfway, 1 % noise": (
        changing(lambda step, count: np.where(step < count // 2, 1, 1.05)),
        (99, 100, 100, 100),
    ),
    "a drift of 5 %, 1 % noise": (
        changing(lambda _, count: np.linspace(1, 1.05, count)),
        (68, 100, 100, 100),
    ),
    "a start 30 % slower, 1 % noise": (changing(fading(0.3)), (100, 100, 100, 100)),
    "a start 20 % slower, 0.1 % noise": (changing(fading(0.2), 0.001), (100, 100, 100, 100)),
    "one step of 20 times the others, 10 % noise": (
        changing(lambda step, count: np.where(step == count // 3, 20, 1), 0.1),
        (100, 100, 100, 100),
    ),
    "a middle third 5 % slower, 1 % noise": (
        changing(lambda step, count: np.where(np.abs(step + 0.5 - count / 2) < count / 6, 1.05, 1)),
        (100, 100, 100, 100),
    ),
    "two first steps 50 % slower, 1 % noise": (
        changing(lambda step, _: np.where(step < 2, 1.5, 1)),
        (100, 19, 0, 0),
    ),
    "nothing: independent, 10 % noise": (STEADY["noisy"], (0, 0, 1, 1)),
    "nothing: correlation of 0.5, 5 % noise": (STEADY["hanging together"], (2, 3, 2, 1)),
    "nothing: one step in ten stalls, at random": (STEADY["random stalls"], (29, 2, 0, 0)),
}


def rows(draws: int) -> Iterator[PromiseRow]:
    fewer = draws // 10
    for name, draw in STEADY.items():
        most = HANGING_TOGETHER if name == "hanging together" else steady.SIGNIFICANCE
        for count in COUNTS:
            promise = f"steady region called changed or slow at the start, {count} steps"
            yield PromiseRow(promise, name, called(draw, count, fewer), fewer, 0, most)
    for name, (draw, percents) in POWER.items():
        for count, percent in zip(COUNTS, percents, strict=True):
            found = _rate(steady.unsteady, draw, count, fewer)
            yield PromiseRow(f"`unsteady`, {count} steps", name, found, fewer, *near(percent, 2))
    promises = {name: (draw, 0.98, 1.0) for name, draw in STALLED.items()}
    promises |= {name: (draw, 0.0, most) for name, (draw, most) in UNSTALLED.items()}
    for name, (draw, low, high) in promises.items():
        for count in (16, 30, 100):
            found = _rate(lambda steps: steady.stall(steps) is not None, draw, count, draws)
            yield PromiseRow(f"a single stall, {count} steps", name, found, draws, low, high)


def _rate(judge: Callable[[list[float]], object], draw: Steps, count: int, draws: int) -> float:
    """Return the fraction of regions of ``count`` steps for which ``judge`` is true."""
    random = np.random.default_rng(0)
    return float(np.mean([bool(judge(draw(random, count).tolist())) for _ in range(draws)]))
