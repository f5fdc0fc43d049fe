"""Simulations of all statistical promises, each with its seed.

    .venv/bin/python -m benchmarks.promises [METHOD..] [--draws N]

Prints a table of promise, sampler, goal and result for each method, and writes it to ``results.md``
here; tables of other methods stay. Most samplers are those of ``tests/framebench/statistics``,
where the tests run a smaller version. Rows "for comparison" hold no promise. Ends with 1 if a
promise is missed by more than three standard errors of the simulation.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "workflow"), str(ROOT / "scripts"), str(ROOT)]


class PromiseRow(NamedTuple):
    """The fraction ``found`` of ``draws`` that should lie between ``low`` and ``high``; both are
    None where a figure is only reported."""

    promise: str
    sampler: str
    found: float
    draws: int
    low: float | None = None
    high: float | None = None

    @property
    def is_missed(self) -> bool:
        """Return whether the goal is missed by more than three standard errors."""
        if self.low is None or self.high is None:
            return False
        error = 3 * max((edge * (1 - edge) / self.draws) ** 0.5 for edge in (self.low, self.high))
        return not self.low - error <= self.found <= self.high + error

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            goal = "for comparison"
        elif self.low == 0:
            goal = f"at most {self.high:.1%}"
        elif self.high == 1:
            goal = f"at least {self.low:.1%}"
        else:
            goal = f"{self.low:.1%} to {self.high:.1%}"
        result = f"{self.found:.1%}" + (" **missed**" if self.is_missed else "")
        return f"| {self.promise} | {self.sampler} | {goal} | {result} |"


def near(percent: float, points: float) -> tuple[float, float]:
    """Return the lower and upper goal: the documented ``percent`` minus and plus ``points``."""
    return max(0.0, (percent - points) / 100), min(1.0, (percent + points) / 100)
