"""Calls with a time budget: wrong winners, and leads that are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from framebench.statistics.verdicts import FALSE_WINNERS

from tests.framebench.plan.simulated_calls import EQUAL, Noise, call, normal, unlike
from tests.framebench.statistics.distributions import modes, skewed, spread
from tests.framebench.statistics.distributions import normal as steady

from .distributions import exponential, heavy_tailed, three_modes
from .row import PromiseRow

SETTINGS = 3
#: Fraction of calls that find all leads, by the noise for which it is promised.
POWER = {"3 % noise": 0.9}
#: Allowed distance from the documented value, for figures that are not promised.
NEAR = 0.02


#: Speeds of seven frameworks at each of the settings of a suite: the first leads by 10 %.
LEADING = (1.0, 1 / 1.1, 0.8, 0.7, 0.6, 0.4, 0.3)


def two_modes(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Sample repeats that are each in one of two equally likely modes, 10 % apart."""
    return normal(0.01)(random, shape) * np.where(random.random(shape) < 0.5, 0.9, 1)


def drift(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Sample repeats on a machine that becomes 30 % faster."""
    return normal(0.02)(random, shape) * np.exp(np.linspace(0, 0.3, shape[0]))[:, None]


def rounds(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Sample repeats on a machine whose speed differs between rounds, such as a shared one."""
    return normal(0.025)(random, shape) * normal(0.045)(random, (shape[0], 1))


def dependent(related: float) -> Noise:
    """Return noise of a machine whose factor is related from one run to the next."""

    def sampled(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        factor = random.normal(0, 1, shape[0] * shape[1])
        for run in range(1, len(factor)):
            factor[run] = related * factor[run - 1] + np.sqrt(1 - related**2) * factor[run]
        mixed = random.permuted(np.exp(0.05 * factor).reshape(shape), axis=1)
        return normal(0.01)(random, shape) * mixed

    return sampled


def stalls(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Sample repeats of which one in twenty takes much longer."""
    return normal(0.01)(random, shape) * np.where(random.random(shape) < 0.05, 0.6, 1)


NOISES: Mapping[str, Noise] = {
    "3 % noise": normal(0.03),
    "two equal modes, 10 % apart": two_modes,
    "drift of 30 %": drift,
    "2.5 % noise, and 4.5 % from round to round": rounds,
    "related by 0.3 from run to run": dependent(0.3),
    "related by 0.7 from run to run": dependent(0.7),
    "related by 0.95 from run to run": dependent(0.95),
    "one repeat in twenty stalls": stalls,
}


#: Noise whose shape differs between the two fastest frameworks, at all settings.
UNLIKE: Mapping[str, Noise] = {
    "1 % and 5 % noise": unlike(steady, spread(5.0)),
    "two equal modes, 5 % apart, and 1 % noise": unlike(modes(0.5), steady),
    "modes of 50 and 30 % slow repeats": unlike(modes(0.5), modes(0.3)),
    "modes of 30 and 70 % slow repeats": unlike(modes(0.3), modes(0.7)),
    "skewed, and modes of 70 % slow repeats": unlike(skewed, modes(0.7)),
    "exponential delays, and 1 % noise": unlike(exponential, steady),
    "three modes, and heavy tails": unlike(three_modes, heavy_tailed),
}


#: Percent of calls that name a wrong winner among two equal leaders at any of three settings, and
#: that find a lead of 10 % at all three, by ``benchmarks/promises``, as in docs/methods.md.
SIMULATED = {
    "3 % noise": (4, 95),
    "two equal modes, 10 % apart": (2, 0),
    "drift of 30 %": (2, 100),
    "2.5 % noise, and 4.5 % from round to round": (2, 6),
    "related by 0.3 from run to run": (2, 6),
    "related by 0.7 from run to run": (2, 10),
    "related by 0.95 from run to run": (2, 53),
    "one repeat in twenty stalls": (2, 14),
    "1 % and 5 % noise": (4, 75),
    "two equal modes, 5 % apart, and 1 % noise": (5, 100),
    "modes of 50 and 30 % slow repeats": (26, 100),
    "modes of 30 and 70 % slow repeats": (14, 71),
    "skewed, and modes of 70 % slow repeats": (14, 57),
    "exponential delays, and 1 % noise": (2, 99),
    "three modes, and heavy tails": (7, 10),
}


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
