"""Steady and unsteady timed regions, and stalls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics import steady

from tests.framebench.statistics.steps import (
    COUNTS,
    HANGING_TOGETHER,
    KEPT_ASIDE,
    NOT_STEADY,
    POWER,
    STALLED,
    STEADY,
    UNSTALLED,
    Steps,
    called,
)

from .row import PromiseRow


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about step times."""
    named = {**STEADY, **{f"{name} (kept aside)": entry for name, entry in KEPT_ASIDE.items()}}
    fewer = draws // 10
    for name, draw in named.items():
        most = HANGING_TOGETHER if name == "hanging together" else steady.SIGNIFICANCE
        for count in (20, 50, 100, 500):
            promise = f"steady, called changed or slow at the start, {count} steps"
            yield PromiseRow(promise, name, called(draw, count, fewer), fewer, 0, most)
    for name, draw in NOT_STEADY.items():
        for count in (100, 500):
            found = _unsteady(draw, count, fewer)
            yield PromiseRow(f"unsteady, {count} steps", name, found, fewer, 0.9, 1)
    for name, (draw, percent) in POWER.items():
        for count, part in zip(COUNTS, percent, strict=True):
            found, goal = _unsteady(draw, count, fewer), part / 100
            low, high = max(0.0, goal - 0.02), min(1.0, goal + 0.02)
            yield PromiseRow(f"`unsteady`, {count} steps", name, found, fewer, low, high)
    yield from _stalls(draws)


def _unsteady(draw: Steps, count: int, draws: int) -> float:
    random = np.random.default_rng(0)
    windows = (draw(random, count).tolist() for _ in range(draws))
    return float(np.mean([bool(steady.unsteady(window)) for window in windows]))


def _stalls(draws: int) -> Iterator[PromiseRow]:
    promises = {name: (draw, 0.98, 1.0) for name, draw in STALLED.items()}
    promises |= {name: (draw, 0.0, most) for name, (draw, most) in UNSTALLED.items()}
    for name, (draw, low, high) in promises.items():
        for count in (16, 30, 100):
            random = np.random.default_rng(0)
            windows = (draw(random, count).tolist() for _ in range(draws))
            found = float(np.mean([steady.stall(window) is not None for window in windows]))
            yield PromiseRow(f"a single stall, {count} steps", name, found, draws, low, high)
