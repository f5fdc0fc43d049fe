"""Calls with a time budget: wrong winners, and leads that are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from framebench.statistics.verdicts import FALSE_WINNERS

from tests.framebench.plan.simulated_calls import EQUAL, Noise, call, normal, unlike
from tests.framebench.statistics.distributions import autoregressive, modes, skewed, spread
from tests.framebench.statistics.distributions import normal as steady

from . import PromiseRow, near
from .intervals import exponential, heavy_tailed, three_modes

SETTINGS = 3
#: Speeds of seven frameworks at each of the settings of a suite: the first leads by 10 %.
LEADING = (1.0, 1 / 1.1, 0.8, 0.7, 0.6, 0.4, 0.3)


def scaled(size: float, factors: Noise) -> Noise:
    """Return normal noise of ``size`` that is multiplied by random ``factors``."""
    return lambda random, shape: normal(size)(random, shape) * factors(random, shape)


def slowed(part: float, factor: float) -> Noise:
    """Return 1 % noise in which a ``part`` of the repeats is multiplied by ``factor``."""
    return scaled(0.01, lambda random, shape: np.where(random.random(shape) < part, factor, 1))


def dependent(related: float) -> Noise:
    """Return noise of a machine whose speed has the correlation ``related`` from run to run."""

    def sampled(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        factor = autoregressive(random.normal(0, 1, shape[0] * shape[1]), related)
        mixed = random.permuted(np.exp(0.05 * factor).reshape(shape), axis=1)
        return normal(0.01)(random, shape) * mixed

    return sampled


#: Noise, percent of calls that name a wrong winner at any of three settings with two equal leaders,
#: and percent of calls that find a 10 % lead at all three settings, as in docs/methods.md.
ALIKE: Mapping[str, tuple[Noise, int, int]] = {
    "3 % noise": (normal(0.03), 4, 95),
    "two equal modes, 10 % apart": (slowed(0.5, 0.9), 2, 0),
    "drift of 30 %": (
        scaled(0.02, lambda _, shape: np.exp(np.linspace(0, 0.3, shape[0]))[:, None]), 2, 100
    ),
    "2.5 % noise, and 4.5 % from round to round": (
        scaled(0.025, lambda random, shape: normal(0.045)(random, (shape[0], 1))), 2, 6
    ),
    "related by 0.3 from run to run": (dependent(0.3), 2, 6),
    "related by 0.7 from run to run": (dependent(0.7), 2, 10),
    "related by 0.95 from run to run": (dependent(0.95), 2, 53),
    "one repeat in twenty stalls": (slowed(0.05, 0.6), 2, 14),
}  # fmt: skip
#: As ALIKE, for noise whose shape differs between the two fastest frameworks.
UNLIKE: Mapping[str, tuple[Noise, int, int]] = {
    "1 % and 5 % noise": (unlike(steady, spread(5.0)), 4, 75),
    "two equal modes, 5 % apart, and 1 % noise": (unlike(modes(0.5), steady), 5, 100),
    "modes of 50 and 30 % slow repeats": (unlike(modes(0.5), modes(0.3)), 26, 100),
    "modes of 30 and 70 % slow repeats": (unlike(modes(0.3), modes(0.7)), 14, 71),
    "skewed, and modes of 70 % slow repeats": (unlike(skewed, modes(0.7)), 14, 57),
    "exponential delays, and 1 % noise": (unlike(exponential, steady), 2, 99),
    "three modes, and heavy tails": (unlike(three_modes, heavy_tailed), 7, 10),
}


def rows(draws: int) -> Iterator[PromiseRow]:
    draws //= 10
    for name, (noise, wrong, lead) in {**ALIKE, **UNLIKE}.items():
        random = np.random.default_rng(1)
        again = [call(random, (EQUAL,) * SETTINGS, noise, calls=2).winners for _ in range(draws)]
        found = float(np.mean([winners != [None] * SETTINGS for winners in again]))
        most = FALSE_WINNERS if name in ALIKE else near(wrong, 2)[1]
        yield PromiseRow("a wrong winner among two equal ones", name, found, draws, 0, most)
        if name in UNLIKE:
            slower = int(np.argmin(noise(random, (100_000, len(EQUAL)))[:, :2].mean(axis=0)))
            found = float(np.mean([slower in winners for winners in again]))
            what = "a winner with an equal median and a smaller mean"
            yield PromiseRow(what, name, found, draws, 0, FALSE_WINNERS)
        once = [call(random, (LEADING,) * SETTINGS, noise).winners for _ in range(draws)]
        found = float(np.mean([winners == [0] * SETTINGS for winners in once]))
        goal = (0.9, 1.0) if name == "3 % noise" else near(lead, 2)
        yield PromiseRow("leads of 10 % found", name, found, draws, *goal)
