"""Distributions of repeats: samplers of positive values, each with its true median."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

import numpy as np
from framebench.statistics import intervals

Sampler = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def normal(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.normal(100.0, 1.0, shape)


def skewed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats that are mostly undisturbed, and sometimes much slower."""
    return 100.0 / (1.0 + random.lognormal(-4.0, 1.0, shape))


def modes(slow: float, noise: float = 0.5) -> Sampler:
    """Return a sampler of repeats; the fraction `slow` of the repeats is in a slower mode."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return random.normal(100.0, noise, shape) - 5.0 * (random.random(shape) < slow)

    return draw


def spread(deviation: float) -> Sampler:
    return lambda random, shape: random.normal(100.0, deviation, shape)


def coarse(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample normal repeats, rounded by a clock to about five different values."""
    return random.normal(100.0, 1.0, shape).round()


def autoregressive(noise: np.ndarray, related: float) -> np.ndarray:
    """Make independent normal noise first-order autoregressive along its first axis, in place."""
    for step in range(1, len(noise)):
        noise[step] = related * noise[step - 1] + np.sqrt(1 - related**2) * noise[step]
    return noise


ROUND = 6  # runs: three cases in two variants; only one case is used
# Standard deviation, and correlation from one run to the next, as on a virtual machine.
DRIFT, RELATED = 0.05, 0.57


def machine(
    random: np.random.Generator, draws: int, runs: int, related: float = RELATED
) -> np.ndarray:
    """Sample the machine's factor in consecutive runs, shape (draws, runs).
    Its logarithm is first-order autoregressive (``related``) with a standard deviation of DRIFT."""
    noise = autoregressive(random.normal(0.0, 1.0, (runs, draws)), related)
    return np.exp(DRIFT * noise.T)


def drifting(random: np.random.Generator, draws: int, pairs: int) -> np.ndarray:
    """Sample the machine's factor in pairs of runs, shape (draws, pairs, 2).
    The runs are next to each other within rounds of ROUND, in random order."""
    rounds = machine(random, draws, pairs * ROUND).reshape(draws, pairs, ROUND)
    return random.permuted(rounds[..., :2], axis=-1)


#: Samplers that tests use; ``benchmarks/promises`` has more.
SAMPLERS: dict[str, Sampler] = {
    "normal": normal,
    "skewed": skewed,
    "bimodal": modes(0.3),
    "two equal modes": modes(0.5),
    "coarse": coarse,
}
#: Samplers of two sides that differ in spread or shape.
UNLIKE: dict[str, tuple[Sampler, Sampler]] = {
    "five times the spread": (normal, spread(5.0)),
    "two equal modes, bimodal": (modes(0.5), modes(0.3)),
}


@cache
def median_of(sampler: Sampler) -> float:
    """Return the true median of a sampler, from two million draws."""
    return float(np.median(sampler(np.random.default_rng(1), (2_000_000,))))


def coverage(found: Iterable[intervals.Interval | None], truth: float) -> float:
    """Return the fraction of intervals that hold the truth."""
    return float(np.mean([bool(ends) and ends[0] <= truth <= ends[1] for ends in found]))


def ratio_held(sides: tuple[Sampler, Sampler], counts: tuple[int, int], draws: int) -> float:
    """Return the fraction of intervals that hold the ratio of the true medians."""
    random = np.random.default_rng(0)
    base, candidate = (
        sampler(random, (draws, count)).tolist()
        for sampler, count in zip(sides, counts, strict=True)
    )
    truth = median_of(sides[1]) / median_of(sides[0])
    return coverage(map(intervals.ratio_interval, base, candidate), truth)


def pairs_held(sides: tuple[Sampler, Sampler], count: int, draws: int) -> float:
    """Return the fraction of intervals of pairs that hold the ratio of the true medians."""
    random = np.random.default_rng(0)
    base, candidate = (side(random, (draws, count)) / median_of(side) for side in sides)
    runs = drifting(random, draws, count) * np.stack([base, candidate], axis=-1)
    ratios = (1.05 * runs[..., 1] / runs[..., 0]).tolist()
    return coverage(map(intervals.signed_rank_interval, ratios), 1.05)


def called_under_drift(factor: float, count: int, draws: int) -> float:
    """Return the fraction of sets of pairs called different, if only the machine drifts.
    ``factor``: the candidate's speed in truth."""
    runs = drifting(np.random.default_rng(0), draws, count)
    ratios = (factor * runs[..., 1] / runs[..., 0]).tolist()
    return float(np.mean([intervals.signed_rank_test(ratio) <= 0.05 for ratio in ratios]))
