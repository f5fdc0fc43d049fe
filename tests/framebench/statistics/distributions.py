"""Distributions of repeats: samplers of positive values, each with its true median."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from framebench.statistics import intervals

Sampler = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
STEPS = 20  # steps in a run of `autocorrelated`


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.normal(100.0, 1.0, shape)


def skewed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats that are mostly undisturbed, and sometimes much slower."""
    return 100.0 / (1.0 + random.lognormal(-4.0, 1.0, shape))


def autocorrelated(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample throughputs of runs with autocorrelated step times (first order, 0.9)."""
    noise = random.normal(0.0, 0.01, (STEPS, *shape))
    for step in range(1, STEPS):
        noise[step] = 0.9 * noise[step - 1] + np.sqrt(1 - 0.9**2) * noise[step]
    return 100.0 / (1.0 + noise).mean(axis=0)


def bimodal(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats of which three in ten are in a slower mode."""
    slow = random.random(shape) < 0.3
    return random.normal(100.0, 0.5, shape) - 5.0 * slow


ROUND = 6  # runs: three cases in two variants; only one case is used
# Standard deviation, and correlation from one run to the next, as on a virtual machine.
DRIFT, RELATED = 0.05, 0.57


def machine(
    random: np.random.Generator, draws: int, runs: int, related: float = RELATED
) -> np.ndarray:
    """Sample the machine's factor in consecutive runs, shape (draws, runs).
    Its logarithm is first-order autoregressive (``related``) with a standard deviation of DRIFT."""
    noise = random.normal(0.0, 1.0, (runs, draws))
    for run in range(1, runs):
        noise[run] = related * noise[run - 1] + np.sqrt(1 - related**2) * noise[run]
    return np.exp(DRIFT * noise.T)


def drifting(random: np.random.Generator, draws: int, pairs: int) -> np.ndarray:
    """Sample the machine's factor in pairs of runs, shape (draws, pairs, 2).
    The runs are next to each other within rounds of ROUND, in random order."""
    rounds = machine(random, draws, pairs * ROUND).reshape(draws, pairs, ROUND)
    return random.permuted(rounds[..., :2], axis=-1)


#: Coverage in percent of the 95 % intervals of seven repeats, by correlation from run to run, as in
#: docs/measuring.md. The drift ranges from one forgotten within a round of six runs to one that
#: outlasts the session.
DRIFTS = (0.57, 0.95, 0.99)
UNDER_DRIFT: dict[str, tuple[int, ...]] = {
    "the ratio of two cases whose repeats are interleaved, as ours are": (98, 100, 99),
    "the ratio of two cases measured one after the other": (78, 58, 68),
    "the median of a case, of what the machine gives on all days": (93, 60, 32),
}


def drift_table() -> str:
    """Return the table of coverage under drift in docs/measuring.md."""
    names = ["forgotten in a round", "lasting some rounds", "outlasting the session"]
    rows = [["95 % interval of", *names], ["---"] + ["--:"] * len(DRIFTS)]
    rows += [[name, *map(str, percent)] for name, percent in UNDER_DRIFT.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def held_under_drift(draws: int, related: float) -> dict[str, float]:
    """Return the fraction of intervals that hold the truth, by the names in UNDER_DRIFT.
    Two cases, each with its own noise of 1 %; one has 1.05 of the other's throughput."""
    random = np.random.default_rng(0)
    rounds = machine(random, draws, 7 * ROUND, related).reshape(draws, 7, ROUND)
    in_rounds = random.permuted(rounds, axis=-1)[..., :2]
    behind = np.stack(np.split(machine(random, draws, 14, related), 2, axis=1), axis=-1)
    own = random.normal(1, 0.01, (draws, 7, 2)) * [1, 1.05]
    ratios = [
        [intervals.ratio_interval(*one.T.tolist()) or (2.0, 0.0) for one in factor * own]
        for factor in (in_rounds, behind)
    ]
    base = (in_rounds * own)[..., 0].tolist()
    medians = [intervals.median_interval(one) or (2.0, 0.0) for one in base]
    truths = zip((*ratios, medians), (1.05, 1.05, 1.0), strict=True)
    held = [sum(low <= true <= high for low, high in found) / draws for found, true in truths]
    return dict(zip(UNDER_DRIFT, held, strict=True))


SAMPLERS: dict[str, Sampler] = {
    "normal": normal,
    "skewed": skewed,
    "autocorrelated": autocorrelated,
    "bimodal": bimodal,
}


@cache
def true_median(name: str) -> float:
    return float(np.median(SAMPLERS[name](np.random.default_rng(1), (2_000_000,))))


REPEAT_STEPS = 130  # needed for a p95
BETWEEN, TOGETHER = 0.02, 0.8


def step_times(random: np.random.Generator, repeats: int) -> np.ndarray:
    """Sample step times, shape (repeats, REPEAT_STEPS).
    They are skewed, autocorrelated within a repeat (first order, TOGETHER), and differ between
    repeats (standard deviation BETWEEN)."""
    noise = random.normal(0.0, 1.0, (REPEAT_STEPS, repeats))
    for step in range(1, REPEAT_STEPS):
        noise[step] = TOGETHER * noise[step - 1] + np.sqrt(1 - TOGETHER**2) * noise[step]
    return np.exp(0.05 * noise.T + random.normal(0.0, BETWEEN, (repeats, 1)))
