"""How many repeats a case gets: a fixed number, or as many as make its interval narrow."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Repeats:
    """``width``: of the median's interval, from end to end, as a part of the median; None for a
    fixed number, where ``at_most`` is ``at_least``."""

    at_least: int
    at_most: int
    width: float | None

    def __str__(self) -> str:
        if self.width is None:
            return str(self.at_least)
        return f"{self.at_least} to {self.at_most}"


#: ``repeats: auto``.
AUTO = Repeats(at_least=7, at_most=30, width=0.01)
