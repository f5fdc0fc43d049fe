"""Intervals and tests of medians, of ratios of two sets of repeats, and of pairs of runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import intervals
from framebench.statistics.verdicts import FASTER, SLOWER, verdict

from tests.framebench.statistics import distributions as telling
from tests.framebench.statistics.distributions import Sampler, coverage, modes

from . import PromiseRow, near


def exponential(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats that other programs delay by exponential times."""
    return 100.0 / (1.0 + random.exponential(0.02, shape))


def three_modes(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats of three modes of different size, one of them noisy."""
    at = random.choice([100.0, 97.0, 90.0], size=shape, p=[0.45, 0.3, 0.25])
    return at + random.normal(0.0, 1.0, shape) * np.where(at == 97.0, 2.0, 0.2)


def heavy_tailed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Sample repeats with the noise of Student's distribution, 2 degrees of freedom."""
    return 100.0 * np.exp(0.01 * random.standard_t(2, shape))


SAMPLERS: dict[str, Sampler] = {
    **telling.SAMPLERS,
    "three modes (held out)": three_modes,
    "heavy-tailed (held out)": heavy_tailed,
}
#: Samplers of two sides that differ in spread or shape.
UNLIKE: dict[str, tuple[Sampler, Sampler]] = {
    **telling.UNLIKE,
    "bimodal, other way round": (modes(0.3), modes(0.7)),
    "three modes, heavy-tailed (held out)": (three_modes, heavy_tailed),
}
SIDES = {**{f"both {name}": (entry, entry) for name, entry in SAMPLERS.items()}, **UNLIKE}
#: Coverage in percent of the 95 % interval of a median, by correlation and number of repeats, if
#: each repeat resembles the previous one, as in docs/methods.md.
RESEMBLING = {
    0.3: {7: 95, 10: 94, 20: 90},
    0.5: {7: 90, 10: 87, 20: 82},
    0.7: {7: 78, 10: 74, 20: 68},
}
#: Correlation from run to run, from a drift that is forgotten within a round of six runs to one
#: that outlasts the session.
DRIFTS = (0.57, 0.95, 0.99)
#: Coverage in percent of the 95 % intervals of seven repeats by DRIFTS, as in docs/methods.md.
UNDER_DRIFT = {
    "the ratio of two cases whose repeats are interleaved, as ours are": (100, 100, 100),
    "the ratio of two cases measured one after the other": (94, 79, 88),
    "the median of a case, as an estimate of the long-term median": (98, 75, 44),
}
FAMILY, REPEATS, NOISE, CHANGE = 20, 7, 0.005, 0.02
PAIRS, PAIR_CHANGE = 12, 0.05


def rows(draws: int) -> Iterator[PromiseRow]:
    yield from _medians(draws)
    yield from _under_drift(draws // 10)
    for name, sides in SIDES.items():
        for counts in ((7, 7), (10, 10), (7, 20), (20, 20)):
            promise = f"interval of a ratio, {counts[0]} and {counts[1]} repeats"
            held = telling.ratio_held(sides, counts, draws)
            yield PromiseRow(promise, name, held, draws, 0.95, 1)
    yield from _verdicts(draws // 2)
    yield from _families(draws // FAMILY)
    yield from _pairs(draws)


def _medians(draws: int) -> Iterator[PromiseRow]:
    """Yield rows of independent repeats, and of repeats that resemble the previous one."""
    for name, sampler in SAMPLERS.items():
        for count in (6, 7, 10, 20):
            values = sampler(np.random.default_rng(0), (draws, count)).tolist()
            held = coverage(map(intervals.median_interval, values), telling.median_of(sampler))
            yield PromiseRow(f"interval of a median, {count} repeats", name, held, draws, 0.95, 1)
    for related, documented in RESEMBLING.items():
        for count, percent in documented.items():
            noise = np.random.default_rng(0).normal(0.0, 1.0, (draws, count))
            name, values = f"correlation {related}", telling.autoregressive(noise.T, related).T
            held = coverage(map(intervals.median_interval, values.tolist()), 0.0)
            promise = f"interval of a median, {count} repeats"
            yield PromiseRow(promise, name, held, draws, *near(percent, 1))
            found = _dependence_found(values)
            yield PromiseRow(f"dependence found (Bartels), {count} repeats", name, found, draws)


def _dependence_found(values: np.ndarray) -> float:
    """Return how often the rank version of von Neumann's ratio (Bartels) finds dependence."""

    def statistic(values: np.ndarray) -> np.ndarray:
        ranks = values.argsort(axis=1).argsort(axis=1)
        return np.asarray((np.diff(ranks, axis=1) ** 2).sum(axis=1))

    draws, count = values.shape
    independent = np.sort(statistic(np.random.default_rng(1).normal(size=(10 * draws, count))))
    return float((statistic(values) < independent[int(0.05 * len(independent))]).mean())


def _under_drift(draws: int) -> Iterator[PromiseRow]:
    """Yield rows of two cases with 1 % noise each; the second has 1.05 times the throughput."""
    for at, related in enumerate(DRIFTS):
        random = np.random.default_rng(0)
        rounds = telling.machine(random, draws, 7 * telling.ROUND, related)
        in_rounds = random.permuted(rounds.reshape(draws, 7, telling.ROUND), axis=-1)[..., :2]
        serial = telling.machine(random, draws, 14, related).reshape(draws, 2, 7).swapaxes(1, 2)
        own = random.normal(1, 0.01, (draws, 7, 2)) * [1, 1.05]
        found = [
            coverage((intervals.ratio_interval(*sides.T.tolist()) for sides in factor * own), 1.05)
            for factor in (in_rounds, serial)
        ]
        base = (in_rounds * own)[..., 0].tolist()
        found.append(coverage(map(intervals.median_interval, base), 1.0))
        for (name, percent), held in zip(UNDER_DRIFT.items(), found, strict=True):
            promise, sampler = f"interval under drift: {name}", f"correlation {related}"
            yield PromiseRow(promise, sampler, held, draws, *near(percent[at], 3))


def _verdicts(draws: int) -> Iterator[PromiseRow]:
    """Yield how often sides of equal medians are called faster or slower."""
    for name, samplers in SIDES.items():
        for count in (7, 20):
            random = np.random.default_rng(0)
            sides = (entry(random, (draws, count)) / telling.median_of(entry) for entry in samplers)
            called = float(_called(*sides).mean())
            promise = f"equal medians called different, {count} repeats"
            yield PromiseRow(promise, name, called, draws, 0, 0.05)


def _families(families: int) -> Iterator[PromiseRow]:
    random = np.random.default_rng(0)
    called = detected = wrong = 0.0
    for _ in range(families):
        base, candidate = random.normal(1, NOISE, (2, FAMILY, REPEATS))
        called += _called(base, candidate, is_family=True).any()
        candidate[:5] *= 1 - CHANGE
        below = _called(base, candidate, is_family=True)
        detected += below[:5].mean()
        wrong += below[5:].sum() / max(below.sum(), 1)
    what = f"{FAMILY} cases of {REPEATS} repeats, {NOISE:.1%} noise"
    equal = "a difference reported among equal cases"
    yield PromiseRow(equal, what, called / families, families, 0, 0.05)
    part = "false part of all differences called, 5 cases changed"
    yield PromiseRow(part, what, wrong / families, families, 0, 0.05)
    yield PromiseRow(f"{CHANGE:.0%} slower found", what, detected / families, families, 0.95, 1)


def _called(base: np.ndarray, candidate: np.ndarray, is_family: bool = False) -> np.ndarray:
    """Return which cases are called different, by p-values that are adjusted in a family."""
    sides = list(zip(base.tolist(), candidate.tolist(), strict=True))
    p_values = [intervals.rank_test(*pair) for pair in sides]
    if is_family:
        p_values = intervals.adjusted(p_values)
    ends = [intervals.ratio_interval(*pair) or (0.0, 2.0) for pair in sides]
    verdicts = [verdict(low, (low, high), p) for (low, high), p in zip(ends, p_values, strict=True)]
    return np.array([text in (FASTER, SLOWER) for text in verdicts])


def _pairs(draws: int) -> Iterator[PromiseRow]:
    """Yield rows of pairs of runs on a machine that drifts."""
    for name, sampler in SAMPLERS.items():
        for count in (6, 7, PAIRS):
            held = telling.pairs_held((sampler, sampler), count, draws)
            yield PromiseRow(f"interval of a ratio, {count} pairs", name, held, draws, 0.93, 1)
    for name, sides in UNLIKE.items():
        held = telling.pairs_held(sides, PAIRS, draws)
        yield PromiseRow(f"interval of a ratio of medians, {PAIRS} pairs", name, held, draws)
    for count in (6, 7, PAIRS):
        called = telling.called_under_drift(1.0, count, draws)
        promise = f"equal sides called different, {count} pairs"
        yield PromiseRow(promise, "machine drift", called, draws, 0, 0.05)
    found = telling.called_under_drift(1 - PAIR_CHANGE, PAIRS, draws)
    promise = f"{PAIR_CHANGE:.0%} slower found, {PAIRS} pairs"
    yield PromiseRow(promise, "machine drift", found, draws, 0.9, 1)
