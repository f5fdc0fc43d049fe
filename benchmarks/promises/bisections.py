"""Bisections of 20 versions with the default options: what they name, and pairs that they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from framebench.features.gate.bisect import (
    CHANGED,
    OPEN,
    UNCHANGED,
    BisectStep,
    search,
)
from framebench.statistics import sequential
from framebench.statistics.sequential import LEVEL
from framebench.statistics.verdicts import PAIRS

from tests.framebench.statistics.gates import MARGIN, SAMPLERS

from .row import PromiseRow

VERSIONS = [str(number) for number in range(20)]
#: Changes that PROMISED of all bisections find, by noise; rates for other changes are only
#: reported.
FOUND = {"normal": (0.9, 0.5), "bimodal": (0.9, 0.5), "drift": (0.9, 0.5)}
PROMISED = 0.95
RATIOS = (0.9, 0.5, 0.3)


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about bisections."""
    draws //= 10
    for noise in SAMPLERS:
        for ratio in (1.0, *RATIOS):
            found = bisections(np.random.default_rng(0), Bisections(noise, ratio), draws)
            what = "nothing changed" if ratio == 1 else f"one at {ratio:g} of those before it"
            sampler = f"{len(VERSIONS)} versions, {what}, {noise}, {found['pairs']:.0f} pairs"
            yield PromiseRow("bisect: a wrong version", sampler, found["wrong"], draws, 0, LEVEL)
            if ratio == 1:
                continue
            low = PROMISED if ratio in FOUND.get(noise, ()) else None
            high = None if low is None else 1
            promise = "bisect: the version that changed it"
            yield PromiseRow(promise, sampler, found["right"], draws, low, high)


class Bisections(NamedTuple):
    """Bisections to simulate. ``noise``: see SAMPLERS; ``ratio``: ratio of the versions from a
    random one on over those before it."""

    noise: str
    ratio: float

    def __str__(self) -> str:
        return f"{self.noise}, {self.ratio:g}"


def bisections(random: np.random.Generator, sampled: Bisections, count: int) -> dict[str, float]:
    """Return the fractions of bisections that name the right version, another one, or none
    (``nothing``), and that cannot tell (``open``), and the mean number of pairs."""
    actual = {"right": 0.0, "wrong": 0.0, "nothing": 0.0, "open": 0.0, "pairs": 0.0}
    for _ in range(count):
        index = int(random.integers(1, len(VERSIONS)))
        ending, pairs = _bisection(random, sampled, index)
        actual[ending] += 1 / count
        actual["pairs"] += pairs / count
    return actual


def _bisection(random: np.random.Generator, sampled: Bisections, index: int) -> tuple[str, int]:
    """Return how a bisection ends in which version ``index`` is changed, and its pairs."""
    known: dict[int, str] = {}
    pairs = 0
    while (at := search(len(VERSIONS), known).following) is not None:
        runs = SAMPLERS[sampled.noise](random, (1, PAIRS, 1, 2))[0, :, 0]
        ratio = sampled.ratio if at >= index else 1.0
        step = _judged(VERSIONS[at], ratio * runs[:, 1] / runs[:, 0])
        known[at] = step.state
        pairs += step.pairs
        if step.state == OPEN:
            return "open", pairs
        if at == len(VERSIONS) - 1 and step.state == UNCHANGED:
            return "nothing", pairs
    return ("right" if search(len(VERSIONS), known).high == index else "wrong"), pairs


def _judged(version: str, ratios: np.ndarray) -> BisectStep:
    """Judge a version by its pairs; the command takes the first pairs that decide."""
    both = [sequential.bounds(array.tolist(), MARGIN, 1) for array in (ratios, 1 / ratios)]
    state = OPEN
    if any(bounds.is_beyond(MARGIN) for bounds in both):
        state = CHANGED
    elif all(bounds.is_within(MARGIN) for bounds in both):
        state = UNCHANGED
    return BisectStep(version, state, pairs=max(bounds.pairs for bounds in both))
