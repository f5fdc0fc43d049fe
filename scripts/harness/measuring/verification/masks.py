"""How far dropout moves what a model computes. Standard library and numpy."""

from __future__ import annotations

import math
import statistics
from typing import Any, Callable, List, Sequence

from harness.adapter import Mismatch
from harness.measuring.verification.errors import relative

#: Random masks that are averaged over: from the first number to the second, as many as make the
#: standard error of the average, relative to it, as small as the third. A layer of few units needs
#: many.
LEAST, MOST, SURE = 8, 256, 0.04


def distance(masked: Callable[[], Any], plain: Any) -> float:
    """Root mean square, over random masks, of the relative distance between outputs with dropout
    and the ``plain`` ones without. ``masked``: outputs with the next mask. Raises
    :class:`Mismatch` where that is always the same."""
    squares: List[float] = []
    while len(squares) < LEAST or (len(squares) < MOST and _uncertainty(squares) > SURE):
        squares.append(relative(masked(), plain) ** 2)
    if squares[0] and len(set(squares)) == 1:
        raise Mismatch(f"dropout has left out the same elements {len(squares)} times")
    return math.sqrt(statistics.mean(squares))


def _uncertainty(squares: Sequence[float]) -> float:
    """Standard error of the root of their mean, relative."""
    mean = statistics.mean(squares)
    return 0.5 * statistics.stdev(squares) / (len(squares) ** 0.5 * mean) if mean else 0.0
