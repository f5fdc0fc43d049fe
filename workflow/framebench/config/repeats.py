"""Number of repeats of a case: fixed, or as many as its interval needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repeats:
    """Number of repeats of a case. ``width``: largest width of the median's interval, as a fraction
    of the median; None for a fixed number, with ``at_most`` equal to ``at_least``."""

    at_least: int
    at_most: int
    width: float | None

    def __str__(self) -> str:
        if self.width is None:
            return str(self.at_least)
        return f"{self.at_least} to {self.at_most}"


#: Meaning of ``repeats: auto``.
AUTO = Repeats(at_least=7, at_most=30, width=0.01)
#: Most repeats of a case in a suite with a time budget that names no number.
MOST_WITHIN_BUDGET = 30
