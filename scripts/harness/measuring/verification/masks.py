"""Measure how far dropout moves a model's outputs. Standard library and numpy."""

from __future__ import annotations

import math
import statistics
from typing import Any, Callable, List, Sequence

from harness.adapter import Mismatch
from harness.measuring.verification.errors import relative

#: Fewest and most random masks to average, and the relative standard error to reach. A layer of few
#: units needs many.
LEAST, MOST, SURE = 8, 256, 0.04


def distance(masked: Callable[[], Any], plain: Any) -> float:
    """Return the root mean square, over random masks, of the relative distance that dropout causes.

    ``masked``: returns outputs with the next mask; ``plain``: outputs without dropout. Raises
    :class:`Mismatch` where the distance never changes."""
    squares: List[float] = []
    while len(squares) < LEAST or (len(squares) < MOST and _uncertainty(squares) > SURE):
        squares.append(relative(masked(), plain) ** 2)
    if squares[0] and len(set(squares)) == 1:
        raise Mismatch(f"dropout has left out the same elements {len(squares)} times")
    return math.sqrt(statistics.mean(squares))


def _uncertainty(squares: Sequence[float]) -> float:
    """Return the relative standard error of the root of their mean."""
    mean = statistics.mean(squares)
    return 0.5 * statistics.stdev(squares) / (len(squares) ** 0.5 * mean) if mean else 0.0
