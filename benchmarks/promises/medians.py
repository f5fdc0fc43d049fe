"""Intervals of medians, of independent and of dependent repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import intervals

from tests.framebench.statistics.distributions import ROUND, Sampler, machine, median_of

from .distributions import KEPT_ASIDE, SAMPLERS
from .row import PromiseRow

NAMED = {**SAMPLERS, **{f"{name} (kept aside)": entry for name, entry in KEPT_ASIDE.items()}}


def resembling(related: float) -> Sampler:
    """Return a sampler of repeats that each resemble the previous one (first order)."""

    def draw(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        noise = random.normal(0.0, 1.0, shape)
        for at in range(1, shape[-1]):
            fresh = np.sqrt(1 - related**2) * noise[..., at]
            noise[..., at] = related * noise[..., at - 1] + fresh
        return 100.0 + noise

    return draw


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


#: Coverage in percent of the 95 % interval of a median, by number of repeats, if each repeat
#: resembles the previous one.
RESEMBLING_COUNTS = (7, 10, 20)


RESEMBLING: dict[float, tuple[int, ...]] = {
    0.3: (95, 94, 90),
    0.5: (90, 87, 82),
    0.7: (78, 74, 68),
}


def median_held(sampler: Sampler, count: int, draws: int, truth: float | None = None) -> float:
    """Return the fraction of intervals of ``count`` repeats that hold the true median."""
    truth = median_of(sampler) if truth is None else truth
    values = sampler(np.random.default_rng(0), (draws, count)).tolist()
    actual = [intervals.median_interval(value) or (1.0, 0.0) for value in values]
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


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about intervals of medians."""
    for name, sampler in NAMED.items():
        for count in (6, 7, 10, 20):
            held = median_held(sampler, count, draws)
            yield PromiseRow(f"interval of a median, {count} repeats", name, held, draws, 0.95, 1)
    yield from _dependent(draws)
    yield from _under_drift(draws // 10)
    yield _percentile(draws // 10)


def _dependent(draws: int) -> Iterator[PromiseRow]:
    """Yield the documented claims about repeats that resemble the previous one, and how often a
    test finds such repeats."""
    for related, percent in RESEMBLING.items():
        for count, part in zip(RESEMBLING_COUNTS, percent, strict=True):
            held = median_held(resembling(related), count, draws, truth=100.0)
            promise, sampler = f"interval of a median, {count} repeats", f"correlation {related}"
            goal = part / 100
            yield PromiseRow(promise, sampler, held, draws, goal - 0.01, goal + 0.01)
            found = _dependence_found(resembling(related), count, draws)
            yield PromiseRow(f"dependence found (Bartels), {count} repeats", sampler, found, draws)


def _dependence_found(sampler: Sampler, count: int, draws: int) -> float:
    """Return how often the rank version of von Neumann's ratio (Bartels) finds dependence."""

    def statistic(values: np.ndarray) -> np.ndarray:
        ranks = values.argsort(axis=1).argsort(axis=1)
        return np.asarray((np.diff(ranks, axis=1) ** 2).sum(axis=1))

    independent = np.sort(statistic(np.random.default_rng(1).normal(size=(10 * draws, count))))
    limit = independent[int(0.05 * len(independent))]
    found = statistic(sampler(np.random.default_rng(0), (draws, count))) < limit
    return float(found.mean())


def _under_drift(draws: int) -> Iterator[PromiseRow]:
    for at, related in enumerate(DRIFTS):
        for name, held in held_under_drift(draws, related).items():
            promised = UNDER_DRIFT[name][at] / 100
            low, high = max(0.0, promised - 0.03), min(1.0, promised + 0.03)
            yield PromiseRow(
                f"interval under drift: {name}", f"correlation {related}", held, draws, low, high
            )


def _percentile(draws: int) -> PromiseRow:
    """Return the coverage of the p95 of 130 steps, the 124th value."""
    p95 = np.sort(step_times(np.random.default_rng(0), 7 * draws), axis=1)[:, 123]
    found = [
        intervals.median_interval(entry) or (1.0, 0.0) for entry in p95.reshape(-1, 7).tolist()
    ]
    held = float(np.mean([low <= np.median(p95) <= high for low, high in found]))
    return PromiseRow("interval of a p95, 7 repeats", "correlated steps", held, draws, 0.95, 1)
