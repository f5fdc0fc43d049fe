"""A row of the table of promises."""

from __future__ import annotations

from typing import NamedTuple


class PromiseRow(NamedTuple):
    """The fraction ``found`` of ``draws`` that should lie between ``low`` and ``high``.

    Both are None where a figure is only reported."""

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

    @property
    def goal(self) -> str:
        """Describe the goal."""
        if self.low is None or self.high is None:
            return "for comparison"
        if self.low == 0:
            return f"at most {self.high:.1%}"
        return (
            f"at least {self.low:.1%}" if self.high == 1 else f"{self.low:.1%} to {self.high:.1%}"
        )

    def __str__(self) -> str:
        result = f"{self.found:.1%}" + (" **missed**" if self.is_missed else "")
        return f"| {self.promise} | {self.sampler} | {self.goal} | {result} |"
