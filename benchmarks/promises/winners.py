"""Calls with a time budget: wrong winners, and leads that are found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from framebench.statistics.verdicts import FALSE_WINNERS

from tests.framebench.plan.simulated_calls import EQUAL, LEADING, NOISES, SIMULATED, UNLIKE, call

from .row import PromiseRow

SETTINGS = 3
#: Fraction of calls that find all leads, by the noise for which it is promised.
POWER = {"3 % noise": 0.9}
#: Allowed distance from the documented value, for figures that are not promised.
NEAR = 0.02


def rows(draws: int) -> Iterator[PromiseRow]:
    """Yield the rows of all promises about winners."""
    draws //= 10
    for name, noise in {**NOISES, **UNLIKE}.items():
        wrong, lead = (percent / 100 for percent in SIMULATED[name])
        random = np.random.default_rng(1)
        again = [call(random, (EQUAL,) * SETTINGS, noise, calls=2) for _ in range(draws)]
        found = float(
            np.mean([any(winner is not None for winner in made.winners) for made in again])
        )
        most = FALSE_WINNERS if name in NOISES else wrong + NEAR
        yield PromiseRow("a wrong winner among two equal ones", name, found, draws, 0, most)
        if name in UNLIKE:
            slower = int(np.argmin(noise(random, (100_000, len(EQUAL)))[:, :2].mean(axis=0)))
            found = float(np.mean([slower in made.winners for made in again]))
            what = "a winner of equal median whose mean is smaller"
            yield PromiseRow(what, name, found, draws, 0, FALSE_WINNERS)
        once = [call(random, (LEADING,) * SETTINGS, noise) for _ in range(draws)]
        found = float(np.mean([outcome.winners == [0] * SETTINGS for outcome in once]))
        near = (max(0.0, lead - NEAR), min(1.0, lead + NEAR))
        low, high = (POWER[name], 1.0) if name in POWER else near
        yield PromiseRow("leads of 10 % found", name, found, draws, low, high)
