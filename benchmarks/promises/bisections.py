"""Bisections of 20 versions with the default options: what they name, and pairs that they take."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics.sequential import LEVEL

from tests.framebench.features.gate.bisections import VERSIONS, Bisections, bisections
from tests.framebench.statistics.gates import SAMPLERS

from .row import PromiseRow

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
