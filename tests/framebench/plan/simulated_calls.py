"""Calls with a time budget, simulated: what they measure, and which winners they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from core.case import Case
from framebench.plan import budget
from framebench.plan.budget import MeasuredCase
from framebench.plan.costs import CLOSING
from framebench.plan.estimates import corrected
from framebench.statistics import repeated_intervals
from framebench.statistics.repeated_intervals import Order
from framebench.statistics.verdicts import FALSE_WINNERS

from ..statistics.distributions import (
    Sampler,
    exponential,
    heavy_tailed,
    median_of,
    modes,
    skewed,
    spread,
    three_modes,
)
from ..statistics.distributions import normal as steady

#: Noise of repeats: factors (rounds, frameworks); the runs of a round are measured together.
Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
ROUNDS = 40
#: Seconds of a run, of its checks, of its overhead, of a page, and of the time budget.
SECONDS, CHECKS, AROUND, PAGE, BUDGET = 5.5, 3.0, 1.0, 3.0, 600.0
#: Speeds of seven frameworks at each of the settings of a suite: the first leads by 10 %.
LEADING = (1.0, 1 / 1.1, 0.8, 0.7, 0.6, 0.4, 0.3)
EQUAL = (1.0, 1.0, 0.8, 0.7, 0.6, 0.4, 0.3)


def normal(size: float) -> Noise:
    return lambda random, shape: np.exp(random.normal(0, size, shape))


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


def unlike(first: Sampler, second: Sampler) -> Noise:
    """Return noise with a different shape for each of the first two frameworks."""

    def sampled(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        sides = [entry(random, shape[:1]) / median_of(entry) for entry in (first, second)]
        others = normal(0.01)(random, (shape[0], shape[1] - 2))
        return np.column_stack([*sides, others])

    return sampled


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


class Outcome(NamedTuple):
    """Result of calls: the framework that each setting names as winner (None: none), and the
    seconds of the longest call."""

    winners: list[int | None]
    spent: float


def call(
    random: np.random.Generator,
    speeds: tuple[tuple[float, ...], ...],
    noise: Noise,
    seconds: float = SECONDS,
    calls: int = 1,
    slower: float = 1.0,
) -> Outcome:
    """Simulate ``calls`` successive calls on a suite with one setting for each row of ``speeds``.

    ``slower``: actual over expected seconds of runs and checks.
    """
    factors = [noise(random, (ROUNDS, len(row))) * np.asarray(row) for row in speeds]
    cases = {
        case_of(setting, framework): (setting, framework)
        for setting, row in enumerate(speeds)
        for framework in range(len(row))
    }
    runs: dict[Case, list[Any]] = {case: [] for case in cases}
    longest = 0.0
    for _ in range(calls):
        spent = 0.0
        while True:
            left = BUDGET - spent - CLOSING * PAGE
            took = {case: [run.wall_seconds for run in runs[case]] for case in cases}
            expected, ratio = corrected(dict.fromkeys(cases, seconds), took)
            known = [
                MeasuredCase(case, 0, expected[case] + AROUND, CHECKS * ratio, runs[case])
                for case in cases
            ]
            wanted = budget.wanted(known, left, ROUNDS)
            if all(wanted[case] == len(runs[case]) for case in cases):
                break
            for case, count in wanted.items():
                setting, framework = cases[case]
                spent += slower * CHECKS if count and not runs[case] else 0.0
                for repeat in range(len(runs[case]), count):
                    figure = float(factors[setting][repeat, framework])
                    run = SimpleNamespace(
                        repeat=repeat + 1, figure=figure, wall_seconds=slower * seconds
                    )
                    runs[case].append(run)
                    spent += run.wall_seconds + AROUND
            spent += PAGE
        longest = max(longest, spent + (CLOSING - 1) * PAGE)
    return Outcome(
        [
            winner(
                [[run.figure for run in runs[case_of(setting, n)]] for n in range(len(row))],
                len(speeds),
            )
            for setting, row in enumerate(speeds)
        ],
        longest,
    )  # fmt: skip


def winner(figures: list[list[float]], settings: int) -> int | None:
    """Return the framework that is named as winner; None without one."""
    if not all(figures):
        return None
    leader, orders = repeated_intervals.orders(figures, FALSE_WINNERS / settings)
    others = [order for order in orders if order is not None]
    is_shown = all(order in (Order.SLOWER, Order.FAR_BEHIND) for order in others)
    return leader if is_shown else None


def case_of(setting: int, framework: int) -> Case:
    return Case(f"framework{framework}", f"model{setting}", "train", 1, 1, 2, "fp32", "none", None)
