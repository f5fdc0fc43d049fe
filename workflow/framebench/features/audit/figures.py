"""Interval arithmetic with printed figures.

A printed figure stands for all numbers that would be printed like it. An interval is a pair of its
ends, in the unit of the figure. Two figures contradict each other only if no numbers behind them
could agree, so nothing is called wrong that rounding explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal, InvalidOperation, localcontext
from itertools import pairwise

from ...statistics.intervals import Interval

# A median of an even number of repeats may end in a 5 exactly at a half unit; binary floats must
# not decide on which side of it.
ROUNDING = 1e-9
#: Largest power of ten that a table prints.
LARGEST = 30


def half_unit(printed: str) -> float | None:
    """Return half a unit of the last printed digit: 0.005 for "28.89", 0.05 for "10.2".

    None for text that is no figure, such as a dash.
    """
    try:
        number = Decimal(printed)
    except InvalidOperation:
        return None
    exponent = number.as_tuple().exponent
    is_figure = isinstance(exponent, int) and max(abs(exponent), abs(number.adjusted())) <= LARGEST
    return float(Decimal(5).scaleb(int(exponent) - 1)) if is_figure else None


def stands_for(printed: str) -> Interval:
    """Return the interval of the numbers that round to ``printed``: 2.175 to 2.185 for "2.18".
    Raises ValueError for text that is no number."""
    half = half_unit(printed)
    if half is None:
        raise ValueError(f"{printed!r} is no number")
    value = float(printed)
    return value - half, value + half


def stands_for_cut(printed: str) -> Interval:
    """Return the interval of numbers rounded or cut to ``printed``: 2.175 to 2.19 for "2.18"."""
    low, high = stands_for(printed)
    return low, high + (high - low) / 2


def product(first: Interval, second: Interval) -> Interval:
    """Return the product of two intervals of positive numbers."""
    return max(0.0, first[0]) * max(0.0, second[0]), first[1] * second[1]


def quotient(first: Interval, second: Interval) -> Interval:
    """Return the quotient of two intervals of positive numbers.
    The upper end is infinite if the divisor may be 0."""
    low = max(0.0, first[0]) / second[1]
    return low, first[1] / second[0] if second[0] > 0 else math.inf


def middle(interval: Interval) -> float:
    return (interval[0] + interval[1]) / 2


def below(first: Interval, second: Interval, part: float = ROUNDING) -> bool:
    """Return whether all of ``first`` is below ``second`` by more than ``part`` of the latter."""
    return second[0] - first[1] > part * abs(second[0])


def apart(first: Interval, second: Interval, part: float = ROUNDING) -> bool:
    """Return whether two intervals are disjoint and further apart than the fraction ``part``."""
    return below(first, second, part) or below(second, first, part)


def is_cut(printed: str, value: float) -> bool:
    """Return whether ``printed`` is ``value`` truncated instead of rounded."""
    figure = Decimal(printed)
    with localcontext(prec=4 * LARGEST):
        return Decimal(repr(value)).quantize(figure, rounding=ROUND_DOWN) == figure


def falling(ordered: Sequence[Interval]) -> list[int]:
    """Return the positions of figures below their predecessor in a sequence that should rise."""
    return [at for at, (first, second) in enumerate(pairwise(ordered), 1) if below(second, first)]


def mean(values: Sequence[Interval]) -> Interval:
    """Return the interval of the arithmetic mean of numbers in these intervals."""
    lows, highs = zip(*values, strict=True)
    return math.fsum(lows) / len(lows), math.fsum(highs) / len(highs)


def deviation(values: Sequence[Interval]) -> Interval:
    """Return the interval of the standard deviation of two or more numbers in these intervals.

    Allows division by n and by n - 1: tables do not say which. The deviation is a seminorm: moving
    n numbers by up to h changes it by at most that of n numbers of size h, h sqrt(n / (n - 1)).
    """
    count = len(values)
    centres = [middle(value) for value in values]
    average = math.fsum(centres) / count
    squares = math.fsum((centre - average) ** 2 for centre in centres)
    moved = max(high - low for low, high in values) / 2 * math.sqrt(count / (count - 1))
    low, high = math.sqrt(squares / count), math.sqrt(squares / (count - 1))
    return max(0.0, low - moved), high + moved


def deviation_within(smallest: Interval, largest: Interval, count: int) -> Interval:
    """Return the interval of standard deviations of ``count`` numbers with these extremes.

    Smallest with all others in the middle of the range: range / sqrt(2 n). Largest with half of
    them at either end: range / 2, times sqrt(n / (n - 1)) for division by n - 1.
    """
    widest = largest[1] - smallest[0]
    narrowest = max(0.0, largest[0] - smallest[1])
    return narrowest / math.sqrt(2 * count), widest / 2 * math.sqrt(count / (count - 1))
