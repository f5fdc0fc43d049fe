"""Simulated performance gates: families of cases, measured in pairs until they are decided."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from framebench.statistics import sequential
from framebench.statistics.verdicts import PAIRS

from .distributions import autoregressive, machine

MARGIN, CASES, NOISE = 0.05, 20, 0.02
#: Samplers of the runs of gates, shape (gates, pairs, cases, 2), base and candidate.
Sampler = Callable[[np.random.Generator, tuple[int, int, int, int]], np.ndarray]


class Gates(NamedTuple):
    """Gates to simulate. ``sampler``: of noise; ``changed``: factor of the last case's candidate;
    ``all_at_limit``: whether all candidates are slower by exactly the margin; ``pairs``: limit."""

    sampler: str = "normal"
    changed: float = 1.0
    all_at_limit: bool = False
    pairs: int = PAIRS

    def __str__(self) -> str:
        factor = "all at the limit" if self.all_at_limit else f"one at {self.changed:g}"
        return f"{self.sampler}, {factor}, at most {self.pairs} pairs"


def normal(random: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    return np.exp(random.normal(0, NOISE, shape))


def drift(random: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Sample runs on a machine whose speed wanders by 5 %, in random order within pairs."""
    of_machine = machine(random, shape[0], int(np.prod(shape[1:]))).reshape(shape)
    return random.permuted(of_machine, axis=-1) * np.exp(random.normal(0, 0.01, shape))


def bimodal(random: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Sample runs, three in ten of which are in a mode that is slower by 5 %."""
    slow = random.random(shape) < 0.3
    return np.exp(random.normal(0, 0.005, shape)) * (1 - 0.05 * slow)


def dependent(random: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Sample runs whose noise has a correlation of 0.5 with the previous repeat's, on each side."""
    noise = random.normal(0, NOISE, shape)
    return np.exp(autoregressive(noise.swapaxes(0, 1), 0.5).swapaxes(0, 1))


def stalls(random: np.random.Generator, shape: tuple[int, int, int, int]) -> np.ndarray:
    """Sample runs in which one in five of the candidate's is slower, by 20 % on average."""
    runs = normal(random, shape)
    stalled = random.random(shape[:-1]) < 0.2
    runs[..., 1] /= 1 + stalled * random.exponential(0.2, shape[:-1])
    return runs


SAMPLERS: dict[str, Sampler] = {
    "normal": normal,
    "drift": drift,
    "bimodal": bimodal,
    "dependent": dependent,
    "stalls": stalls,
}


def gates(random: np.random.Generator, sampled: Gates, count: int) -> dict[str, float]:
    """Return the fractions of gates that pass and that report a regression, and the mean pairs."""
    factors = np.full(CASES, 1 - MARGIN) if sampled.all_at_limit else np.ones(CASES)
    factors[-1] *= sampled.changed
    actual = {"passed": 0.0, "regression": 0.0, "pairs": 0.0}
    for _ in range(count):
        runs = SAMPLERS[sampled.sampler](random, (1, sampled.pairs, CASES, 2))[0]
        ratios = (runs[..., 1] / runs[..., 0] * factors).T.tolist()
        bounds = [sequential.bounds(ratio, MARGIN, CASES) for ratio in ratios]
        actual["passed"] += all(bound.is_within(MARGIN) for bound in bounds) / count
        actual["regression"] += any(bound.is_beyond(MARGIN) for bound in bounds) / count
        actual["pairs"] += sum(bound.pairs for bound in bounds) / CASES / count
    return actual
