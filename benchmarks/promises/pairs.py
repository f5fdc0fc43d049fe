"""Pairs of runs under machine drift: intervals and tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import intervals

from tests.framebench.statistics.distributions import Sampler, drifting, median_of

from .distributions import KEPT_ASIDE, SAMPLERS, UNLIKE, UNLIKE_KEPT_ASIDE
from .medians import resembling
from .row import PromiseRow

PAIRS, CHANGE = 12, 0.05


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about pairs."""
    aside = {f"{name} (kept aside)": entry for name, entry in KEPT_ASIDE.items()}
    for name, entry in {**SAMPLERS, **aside}.items():
        for count in (6, 7, PAIRS):
            held = _coverage((entry, entry), count, draws)
            yield PromiseRow(f"interval of a ratio, {count} pairs", name, held, draws, 0.93, 1)
    for related in (0.3, 0.5, 0.7):
        held = _coverage((resembling(related),) * 2, PAIRS, draws)
        name = f"correlation {related}"
        yield PromiseRow(f"interval of a ratio, {PAIRS} pairs", name, held, draws)
    aside_too = {f"{name} (kept aside)": sides for name, sides in UNLIKE_KEPT_ASIDE.items()}
    for name, sides in {**UNLIKE, **aside_too}.items():
        for count in (7, PAIRS):
            promise = f"interval of a ratio of medians, {count} pairs"
            yield PromiseRow(promise, name, _coverage(sides, count, draws), draws)
    yield from _tests(draws)


def _coverage(sides: tuple[Sampler, Sampler], count: int, draws: int) -> float:
    """Return the fraction of intervals that hold the ratio of the true medians."""
    random = np.random.default_rng(0)
    base, candidate = (side(random, (draws, count)) / median_of(side) for side in sides)
    runs = drifting(random, draws, count) * np.stack([base, candidate], axis=-1)
    ratios = (1.05 * runs[..., 1] / runs[..., 0]).tolist()
    found = [intervals.signed_rank_interval(ratio) or (2, 0) for ratio in ratios]
    return float(np.mean([low <= 1.05 <= high for low, high in found]))


def _tests(draws: int) -> Iterator[PromiseRow]:
    """Yield rows on pairs whose only noise is machine drift."""
    for count in (6, 7, PAIRS):
        runs = drifting(np.random.default_rng(0), draws, count)
        ratios = (runs[..., 1] / runs[..., 0]).tolist()
        found = float(np.mean([intervals.signed_rank_test(ratio) <= 0.05 for ratio in ratios]))
        promise = f"equal sides called different, {count} pairs"
        yield PromiseRow(promise, "machine drift", found, draws, 0, 0.05)
    base, candidate = runs[..., 0].tolist(), ((1 - CHANGE) * runs[..., 1]).tolist()
    sides = list(zip(base, candidate, strict=True))
    paired = float(np.mean([intervals.signed_rank_test(np.divide(c, b)) <= 0.05 for b, c in sides]))
    promise = f"{CHANGE:.0%} slower found, {PAIRS} pairs"
    yield PromiseRow(promise, "machine drift", paired, draws, 0.9, 1)
