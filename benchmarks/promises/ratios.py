"""Ratios of two sets of repeats: intervals and verdicts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import intervals
from framebench.statistics.verdicts import FASTER, SLOWER, verdict

from tests.framebench.statistics.distributions import Sampler, median_of, ratio_held

from .distributions import KEPT_ASIDE, SAMPLERS, UNLIKE, UNLIKE_KEPT_ASIDE
from .row import PromiseRow

Sides = tuple[Sampler, Sampler]
SIDES: dict[str, Sides] = {
    **{f"both {name}": (sampler, sampler) for name, sampler in SAMPLERS.items()},
    **{f"both {name} (kept aside)": (entry, entry) for name, entry in KEPT_ASIDE.items()},
    **UNLIKE,
    **{f"{name} (kept aside)": sides for name, sides in UNLIKE_KEPT_ASIDE.items()},
}
FAMILY, REPEATS, NOISE, CHANGE = 20, 7, 0.005, 0.02


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about ratios of two sets."""
    for name, sides in SIDES.items():
        for counts in ((7, 7), (10, 10), (7, 20), (20, 20)):
            promise = f"interval of a ratio, {counts[0]} and {counts[1]} repeats"
            held = ratio_held(sides, counts, draws)
            yield PromiseRow(promise, name, held, draws, 0.95, 1)
    yield from _verdicts(draws // 2)
    yield from _families(draws // FAMILY)
    yield from _beyond(draws)


def _verdicts(draws: int) -> Iterator[PromiseRow]:
    """Yield how often sides of equal medians are called faster or slower."""
    for name, (first, second) in SIDES.items():
        for count in (7, 20):
            random = np.random.default_rng(0)
            sides = [
                (entry(random, (draws, count)) / median_of(entry)).tolist()
                for entry in (first, second)
            ]
            p_values = [intervals.rank_test(*pair) for pair in zip(*sides, strict=True)]
            called = 0
            for p, base, candidate in zip(p_values, *sides, strict=True):
                ends = intervals.ratio_interval(base, candidate)
                ratio = float(np.median(candidate) / np.median(base))
                called += bool(ends) and verdict(ratio, ends or (0, 0), p) in (FASTER, SLOWER)
            promise = f"equal medians called different, {count} repeats"
            yield PromiseRow(promise, name, called / draws, draws, 0, 0.05)


def _families(families: int) -> Iterator[PromiseRow]:
    random = np.random.default_rng(0)
    called = detected = wrong = 0.0
    for _ in range(families):
        base, candidate = random.normal(1, NOISE, (2, FAMILY, REPEATS))
        called += _called(base, candidate).any()
        candidate[:5] *= 1 - CHANGE
        below = _called(base, candidate)
        detected += below[:5].mean()
        wrong += below[5:].sum() / max(below.sum(), 1)
    what = f"{FAMILY} cases of {REPEATS} repeats, {NOISE:.1%} noise"
    equal = "a difference called among equal cases"
    yield PromiseRow(equal, what, called / families, families, 0, 0.05)
    part = "false part of all differences called, 5 cases changed"
    yield PromiseRow(part, what, wrong / families, families, 0, 0.05)
    yield PromiseRow(f"{CHANGE:.0%} slower found", what, detected / families, families, 0.95, 1)


def _called(base: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """Return which cases of a family are called different."""
    sides = list(zip(base.tolist(), candidate.tolist(), strict=True))
    p_values = intervals.adjusted([intervals.rank_test(*pair) for pair in sides])
    ends = [intervals.ratio_interval(*pair) or (0.0, 2.0) for pair in sides]
    verdicts = [verdict(low, (low, high), p) for (low, high), p in zip(ends, p_values, strict=True)]
    return np.array([text in (FASTER, SLOWER) for text in verdicts])


def _beyond(draws: int) -> Iterator[PromiseRow]:
    """Yield how often a whole interval lies beyond a threshold of 5 %, by the true factor."""
    for factor, low, high in ((0.95, 0, 0.025), (0.955, 0, 0.001), (0.93, 0.95, 1)):
        random = np.random.default_rng(0)
        base = random.normal(1, NOISE, (draws, REPEATS)).tolist()
        candidate = (factor * random.normal(1, NOISE, (draws, REPEATS))).tolist()
        pairs = zip(base, candidate, strict=True)
        ends = [intervals.ratio_interval(*pair) or (0, 2) for pair in pairs]
        held = float(np.mean([end < 0.95 for _, end in ends]))
        what = f"in truth {1 - factor:.1%} slower, {REPEATS} repeats, {NOISE:.1%} noise"
        yield PromiseRow("shown to be over 5 % slower", what, held, draws, low, high)
