"""Calls with a time budget, simulated: what they measure, and which winners they name."""

from __future__ import annotations

from collections.abc import Callable
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

from ..statistics.distributions import Sampler, median_of

#: Noise of repeats: factors (rounds, frameworks); the runs of a round are measured together.
Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
ROUNDS = 40
#: Seconds of a run, of its checks, of its overhead, of a page, and of the time budget.
SECONDS, CHECKS, AROUND, PAGE, BUDGET = 5.5, 3.0, 1.0, 3.0, 600.0
EQUAL = (1.0, 1.0, 0.8, 0.7, 0.6, 0.4, 0.3)


def normal(size: float) -> Noise:
    return lambda random, shape: np.exp(random.normal(0, size, shape))


def unlike(first: Sampler, second: Sampler) -> Noise:
    """Return noise with a different shape for each of the first two frameworks."""

    def sampled(random: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        sides = [entry(random, shape[:1]) / median_of(entry) for entry in (first, second)]
        others = normal(0.01)(random, (shape[0], shape[1] - 2))
        return np.column_stack([*sides, others])

    return sampled


class Outcome(NamedTuple):
    """The winner of each setting (None: none), and the seconds of the longest call."""

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
    ``slower``: actual over expected seconds of runs and checks."""
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
    if not all(figures):
        return None
    leader, orders = repeated_intervals.orders(figures, FALSE_WINNERS / settings)
    others = [order for order in orders if order is not None]
    is_shown = all(order in (Order.SLOWER, Order.FAR_BEHIND) for order in others)
    return leader if is_shown else None


def case_of(setting: int, framework: int) -> Case:
    return Case(f"framework{framework}", f"model{setting}", "train", 1, 1, 2, "fp32", "none", None)
