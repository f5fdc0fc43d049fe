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


def modes(slow: float, noise: float = 0.5) -> Sampler:
    """Return a sampler of repeats; the fraction `slow` of the repeats is in a slower mode."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return random.normal(100.0, noise, shape) - 5.0 * (random.random(shape) < slow)

    return draw


def spread(deviation: float) -> Sampler:
    """Return a sampler of normal repeats."""
    return lambda random, shape: random.normal(100.0, deviation, shape)


def exponential(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats that other programs delay by exponential times."""
    return 100.0 / (1.0 + random.exponential(0.02, shape))


def coarse(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample normal repeats, rounded by a clock to about five different values."""
    return random.normal(100.0, 1.0, shape).round()


def three_modes(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats of three modes of different size, one of them noisy."""
    at = random.choice([100.0, 97.0, 90.0], size=shape, p=[0.45, 0.3, 0.25])
    return at + random.normal(0.0, 1.0, shape) * np.where(at == 97.0, 2.0, 0.2)


def heavy_tailed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats with the noise of Student's distribution, 2 degrees of freedom."""
    return 100.0 * np.exp(0.01 * random.standard_t(2, shape))


def resembling(related: float) -> Sampler:
    """Return a sampler of repeats that each resemble the previous one (first order)."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        noise = random.normal(0.0, 1.0, shape)
        for at in range(1, shape[-1]):
            fresh = np.sqrt(1 - related**2) * noise[..., at]
            noise[..., at] = related * noise[..., at - 1] + fresh
        return 100.0 + noise

    return draw


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
#: docs/methods.md. The drift ranges from one forgotten within a round of six runs to one that
#: outlasts the session.
DRIFTS = (0.57, 0.95, 0.99)
UNDER_DRIFT: dict[str, tuple[int, ...]] = {
    "the ratio of two cases whose repeats are interleaved, as ours are": (100, 100, 100),
    "the ratio of two cases measured one after the other": (94, 79, 88),
    "the median of a case, of what the machine gives on all days": (98, 75, 44),
}


def held_under_drift(draws: int, related: float) -> dict[str, float]:
    """Return the fraction of intervals that hold the truth, by the names in UNDER_DRIFT.
    Two cases, each with its own noise of 1 %; one has 1.05 of the other's throughput."""
    random = np.random.default_rng(0)
    rounds = machine(random, draws, 7 * ROUND, related).reshape(draws, 7, ROUND)
    in_rounds = random.permuted(rounds, axis=-1)[..., :2]
    behind = np.stack(np.split(machine(random, draws, 14, related), 2, axis=1), axis=-1)
    own = random.normal(1, 0.01, (draws, 7, 2)) * [1, 1.05]
    ratios = [
        [intervals.ratio_interval(*entry.T.tolist()) or (2.0, 0.0) for entry in factor * own]
        for factor in (in_rounds, behind)
    ]
    base = (in_rounds * own)[..., 0].tolist()
    medians = [intervals.median_interval(entry) or (2.0, 0.0) for entry in base]
    truths = zip((*ratios, medians), (1.05, 1.05, 1.0), strict=True)
    held = [sum(low <= true <= high for low, high in entry) / draws for entry, true in truths]
    return dict(zip(UNDER_DRIFT, held, strict=True))


SAMPLERS: dict[str, Sampler] = {
    "normal": normal,
    "skewed": skewed,
    "autocorrelated": autocorrelated,
    "bimodal": modes(0.3),
    "two equal modes": modes(0.5),
    "exponential": exponential,
    "coarse": coarse,
}
#: Samplers that were not used to choose a method.
KEPT_ASIDE: dict[str, Sampler] = {
    "three modes": three_modes,
    "heavy-tailed": heavy_tailed,
}
#: Samplers of two sides that differ in spread or shape.
UNLIKE: dict[str, tuple[Sampler, Sampler]] = {
    "five times the spread": (normal, spread(5.0)),
    "two equal modes, normal": (modes(0.5), normal),
    "two equal modes, bimodal": (modes(0.5), modes(0.3)),
    "bimodal, other way round": (modes(0.3), modes(0.7)),
    "skewed, bimodal": (skewed, modes(0.7)),
    "exponential, normal": (exponential, normal),
}
#: Further pairs of sides that differ in spread or shape, not used to choose the method.
UNLIKE_KEPT_ASIDE: dict[str, tuple[Sampler, Sampler]] = {
    "three modes, heavy-tailed": (three_modes, heavy_tailed),
    "coarse, three modes": (coarse, three_modes),
}
#: Coverage in percent of the 95 % interval of a median, by number of repeats, if each repeat
#: resembles the previous one.
RESEMBLING_COUNTS = (7, 10, 20)
RESEMBLING: dict[float, tuple[int, ...]] = {
    0.3: (95, 94, 90),
    0.5: (90, 87, 82),
    0.7: (78, 74, 68),
}


@cache
def median_of(sampler: Sampler) -> float:
    """Return the true median of a sampler, from two million draws."""
    return float(np.median(sampler(np.random.default_rng(1), (2_000_000,))))


def median_held(sampler: Sampler, count: int, draws: int, truth: float | None = None) -> float:
    """Return the fraction of intervals of ``count`` repeats that hold the true median."""
    truth = median_of(sampler) if truth is None else truth
    values = sampler(np.random.default_rng(0), (draws, count)).tolist()
    actual = [intervals.median_interval(value) or (1.0, 0.0) for value in values]
    return float(np.mean([low <= truth <= high for low, high in actual]))


def ratio_held(sides: tuple[Sampler, Sampler], counts: tuple[int, int], draws: int) -> float:
    """Return the fraction of intervals that hold the ratio of the true medians."""
    random = np.random.default_rng(0)
    base, candidate = (
        sampler(random, (draws, count)).tolist()
        for sampler, count in zip(sides, counts, strict=True)
    )
    truth = median_of(sides[1]) / median_of(sides[0])
    both = zip(base, candidate, strict=True)
    actual = [intervals.ratio_interval(*pair) or (2.0, 0.0) for pair in both]
    return float(np.mean([low <= truth <= high for low, high in actual]))


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
