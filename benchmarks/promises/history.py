"""Changes in series of result sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.framebench.statistics.series import (
    CHANGING_NOISE_CALLED,
    NOISE,
    STEP,
    Draw,
    called,
    changing_noise,
    heavy_tails,
    steady_series,
)

from .row import PromiseRow

#: Fraction of series of 20 sets in which a jump of FOUR standard deviations is found.
FOUR = 4


FOUND = {0.0: 0.99, 0.3: 0.92, 0.6: 0.78}


def small_jump(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series with a jump of FOUR standard deviations in the middle."""
    step = FOUR * NOISE * (np.arange(points) >= points // 2)
    return steady_series(random, points, related) + step


def late_jump(last: int) -> Draw:
    """Return a sampler of series with a jump by STEP before the ``last`` points."""

    def draw(random: np.random.Generator, points: int, related: float) -> np.ndarray:
        return steady_series(random, points, related) + STEP * (np.arange(points) >= points - last)

    return draw


def two_jumps(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series with a jump by STEP after each third of the points."""
    levels = STEP * (3 * np.arange(points) // points)
    return steady_series(random, points, related) + levels


def growing_noise(random: np.random.Generator, points: int, related: float) -> np.ndarray:
    """Sample series whose noise grows steadily to five times its size."""
    return steady_series(random, points, related) * np.linspace(1, 5, points)


#: Series without a change.
UNCHANGED: dict[str, Draw] = {
    "noise of five times the size in the last fifth": changing_noise(5, 0.8, 1),
    "noise of five times the size in the first fifth": changing_noise(5, 0, 0.2),
    "noise of three times the size in the second half": changing_noise(3, 0.5, 1),
}


#: Further series without a change, not used to choose the method.
UNCHANGED_KEPT_ASIDE: dict[str, Draw] = {
    "growing noise": growing_noise,
    "heavy tails": heavy_tails,
    "noise of a fifth of the size in the last third": changing_noise(0.2, 0.67, 1),
}


STEADY = {
    "equal noise": steady_series,
    **UNCHANGED,
    **{f"{name} (kept aside)": draw for name, draw in UNCHANGED_KEPT_ASIDE.items()},
}


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about series, by the correlation of their noise."""
    fewer = draws // 10
    for related, part in FOUND.items():
        for name, draw in STEADY.items():
            limit = 0.05 if draw is steady_series else CHANGING_NOISE_CALLED[related]
            for count in (10, 20, 40):
                alarms = called(draw, count, related, fewer)
                promise = f"unchanged, called changed, {count} sets"
                yield PromiseRow(promise, f"{name}, r = {related}", alarms, fewer, 0, limit)
        found = called(small_jump, 20, related, fewer)
        promise, sampler = "a change found, 20 sets", f"a jump of four deviations, r = {related}"
        yield PromiseRow(promise, sampler, found, fewer, part - 0.02, min(1.0, part + 0.02))
        for last in (3, 5):
            found = called(late_jump(last), 20, related, fewer)
            sampler = f"a jump of six deviations {last} sets ago, r = {related}"
            yield PromiseRow(promise, sampler, found, fewer)
        found = called(two_jumps, 45, related, fewer)
        sampler = f"two jumps of six deviations, r = {related}"
        yield PromiseRow("a change found, 45 sets", sampler, found, fewer)
