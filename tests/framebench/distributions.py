"""What repeats may look like: samplers of positive values, each with its true median."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

Sampler = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
STEPS = 20  # in a run of `autocorrelated`


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.normal(100.0, 1.0, shape)


def skewed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Most repeats are undisturbed, some are much slower."""
    return 100.0 / (1.0 + random.lognormal(-4.0, 1.0, shape))


def autocorrelated(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Throughputs of runs whose step times hang together (first order, 0.9)."""
    noise = random.normal(0.0, 0.01, (STEPS, *shape))
    for step in range(1, STEPS):
        noise[step] = 0.9 * noise[step - 1] + np.sqrt(1 - 0.9**2) * noise[step]
    return 100.0 / (1.0 + noise).mean(axis=0)


def bimodal(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Three of ten repeats land in a slower mode."""
    slow = random.random(shape) < 0.3
    return random.normal(100.0, 0.5, shape) - 5.0 * slow


ROUND = 6  # runs: three cases in two variants, of which those of one case are looked at
# Standard deviation, and correlation from one run to the next, about as on a virtual machine.
DRIFT, RELATED = 0.05, 0.57


def drifting(random: np.random.Generator, draws: int, pairs: int) -> np.ndarray:
    """The machine's own factor in ``draws`` times so many pairs of runs, shape (draws, pairs, 2):
    runs next to each other within rounds of ROUND, which of the two is first at random. Its
    logarithm wanders (first order, RELATED) with a standard deviation of DRIFT."""
    noise = random.normal(0.0, 1.0, (pairs * ROUND, draws))
    for run in range(1, len(noise)):
        noise[run] = RELATED * noise[run - 1] + np.sqrt(1 - RELATED**2) * noise[run]
    rounds = noise.T.reshape(draws, pairs, ROUND)
    return np.exp(DRIFT * random.permuted(rounds[..., :2], axis=-1))


SAMPLERS: dict[str, Sampler] = {
    "normal": normal,
    "skewed": skewed,
    "autocorrelated": autocorrelated,
    "bimodal": bimodal,
}


@cache
def true_median(name: str) -> float:
    return float(np.median(SAMPLERS[name](np.random.default_rng(1), (2_000_000,))))


REPEAT_STEPS = 130  # what a p95 needs
BETWEEN, TOGETHER = 0.02, 0.8


def step_times(random: np.random.Generator, repeats: int) -> np.ndarray:
    """Of so many repeats, shape (repeats, REPEAT_STEPS): skewed, and they hang together in a repeat
    (first order, TOGETHER), which as a whole is faster or slower (standard deviation BETWEEN)."""
    noise = random.normal(0.0, 1.0, (REPEAT_STEPS, repeats))
    for step in range(1, REPEAT_STEPS):
        noise[step] = TOGETHER * noise[step - 1] + np.sqrt(1 - TOGETHER**2) * noise[step]
    return np.exp(0.05 * noise.T + random.normal(0.0, BETWEEN, (repeats, 1)))
