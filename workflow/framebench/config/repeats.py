"""Number of repeats of a case: fixed, or as many as a time budget or a gate needs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repeats:
    """Number of repeats of a case.

    ``margin``: margin of a performance gate, whose two variants are measured until each case is
    decided, with ``two_sided`` also whether it is faster by more than the margin. Without it, and
    without a time budget, the number is fixed, and ``at_most`` equals ``at_least``.
    """

    at_least: int
    at_most: int
    margin: float | None = None
    two_sided: bool = False

    def __str__(self) -> str:
        if self.at_least == self.at_most:
            return str(self.at_least)
        return f"{self.at_least} to {self.at_most}"


#: Repeats of a case in a suite that names no number.
USUAL = 7
#: Most pairs of a performance gate, and the pairs before its first decision.
PAIRS, FIRST_LOOK = 40, 8
#: Most repeats of a case in a suite with a time budget that names no number.
MOST_WITHIN_BUDGET = 30
