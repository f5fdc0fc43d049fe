"""Intervals of medians, of independent and of dependent repeats."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import intervals

from tests.framebench.statistics.distributions import (
    DRIFTS,
    KEPT_ASIDE,
    RESEMBLING,
    RESEMBLING_COUNTS,
    SAMPLERS,
    UNDER_DRIFT,
    Sampler,
    held_under_drift,
    median_held,
    resembling,
    step_times,
)

from .row import PromiseRow

NAMED = {**SAMPLERS, **{f"{name} (kept aside)": entry for name, entry in KEPT_ASIDE.items()}}


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
