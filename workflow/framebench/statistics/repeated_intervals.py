"""Comparison of two cases at several looks, with error rates that hold whenever repeats stop.

Repeats are added until an order is settled, and a later call adds more. A test that is made anew
after each repeat would call false differences too often. Repeated confidence intervals (Jennison &
Turnbull, "Interim Analyses: The Repeated Confidence Interval Approach", *JRSS B* 51, 1989) hold at
all looks at once: each look takes a part of the error rate, and the parts add up to the rate.

Later looks compare pairs: the two repeats of the same index follow each other, so that the state of
the machine cancels in their ratio. The first looks have too few pairs for their part of the rate.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from enum import Enum

from . import descriptive, intervals
from .verdicts import THRESHOLD

#: Repeats of each side at the first looks, with each look's part of the error rate. At 7 and 8
#: repeats, intervals of medians end at the extremes, at 10 at the values next to them.
FIRST_LOOKS = {7: 0.32, 8: 0.16, 10: 0.43}
FIRST_LOOK = min(FIRST_LOOKS)
#: Repeats from which looks compare pairs.
PAIRED_FROM = 10
#: Repeats at the look after FIRST_LOOKS; each further look has 1.5 times the repeats. Each of these
#: looks takes half of the remaining error rate.
LATER_LOOK = 14
#: A case is no contender if it is further behind the leader's median than this fraction: with one
#: repeat, and for the fastest of several repeats.
FAR_ONCE, FAR = 0.5, 0.12
#: Distance behind the leader in standard deviations of the repeats, which must also be exceeded.
FAR_DEVIATIONS = 4.0
#: Repeats before the first look, which identify most cases that are far behind.
SECOND = 2


class Order(Enum):
    """Order of a leader and another case, as far as it is known."""

    SLOWER = "slower"
    FAR_BEHIND = "far behind"
    NO_DIFFERENCE = "no difference"
    OPEN = "open"


def looks() -> Iterator[tuple[int, float]]:
    """Yield the repeats of each side at each look, and its part of the error rate."""
    yield from FIRST_LOOKS.items()
    left = 1 - sum(FIRST_LOOKS.values())
    for later in itertools.count():
        left /= 2
        yield int(LATER_LOOK * 1.5**later), left


def next_look(repeats: int) -> int:
    """Return the repeats of each side at the next look, or before the first one."""
    return SECOND if repeats < SECOND else next(n for n, _ in looks() if n > repeats)


def ratio_interval(base: Sequence[float], candidate: Sequence[float]) -> intervals.Interval | None:
    """Return a 95 % interval for the ratio that holds at all looks so far.

    The ratio is that of the medians; at looks that compare pairs, it is the median of their ratios.
    ``base``, ``candidate``: positive figures of repeats, in the order of measurement; a look takes
    the first repeats of both. None before the first look."""
    either, paired = intervals.ratio_interval, intervals.median_interval
    return _at_all_looks(either, paired, base, candidate, 1 - intervals.CONFIDENCE)


def _at_all_looks(
    either: Callable[[Sequence[float], Sequence[float], float], intervals.Interval | None],
    paired: Callable[[Sequence[float], float], intervals.Interval | None],
    base: Sequence[float],
    candidate: Sequence[float],
    error: float,
) -> intervals.Interval | None:
    """Return the intersection of the intervals of all looks, which miss the ratio with probability
    ``error`` together.

    ``either``, ``paired``: methods for two sides, and for ratios of pairs.
    """
    low, high, found = 0.0, float("inf"), None
    for count, part in looks():
        if count > min(len(base), len(candidate)):
            break
        sides, confidence = (base[:count], candidate[:count]), 1 - error * part
        if count < PAIRED_FROM:
            found = either(*sides, confidence)
        else:
            found = paired([own / other for other, own in zip(*sides, strict=True)], confidence)
        if found is None:
            continue
        low, high = max(low, found[0]), min(high, found[1])
    if not high < float("inf"):
        return None
    return (low, high) if low <= high else found


def orders(cases: Sequence[Sequence[float]], error: float) -> tuple[int, list[Order | None]]:
    """Return the leader, which has the largest median, and the order of each other case to it.

    ``cases``: figures of each case's repeats, of which more is better, in the order in which they
    were made. ``error``: probability of any false order to the leader.
    """
    ranked = sorted(range(len(cases)), key=lambda at: -descriptive.median(cases[at]))
    leader, scatter = ranked[0], _scatter(cases)
    found: list[Order | None] = [None] * len(cases)
    for rank, at in enumerate(ranked[1:]):
        found[at] = _order(cases[leader], cases[at], error)
        # The runner-up is compared by an interval, however far behind it is.
        if rank and found[at] is Order.OPEN and _is_far(cases[leader], cases[at], scatter):
            found[at] = Order.FAR_BEHIND
    return leader, found


def _order(leader: Sequence[float], other: Sequence[float], error: float) -> Order:
    """Return the order that two intervals for the ratio both show.

    The interval by ranks shares the error rate of all settings, but holds only if the sides differ
    by a factor. The interval of medians holds for other shapes, too, at 95 % per comparison."""
    either, paired = intervals.moses_interval, intervals.signed_rank_interval
    both = (
        _at_all_looks(either, paired, other, leader, error),
        ratio_interval(other, leader),
    )
    ends = [item for item in both if item is not None]
    if len(ends) == len(both):
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        if low > 1:
            return Order.SLOWER
        if low > 1 - THRESHOLD and high < 1 + THRESHOLD:
            return Order.NO_DIFFERENCE
    return Order.OPEN


def _is_far(leader: Sequence[float], other: Sequence[float], scatter: float) -> bool:
    behind = 1 - max(other) / descriptive.median(leader)
    far = FAR if len(other) >= SECOND else FAR_ONCE
    return behind > max(far, FAR_DEVIATIONS * scatter)


def _scatter(cases: Sequence[Sequence[float]]) -> float:
    """Return the pooled standard deviation of all cases' repeats, as a fraction of their mean."""
    import numpy as np

    repeated = [np.asarray(values) for values in cases if len(values) > SECOND]
    squares = [float(np.var(array, ddof=1) / np.mean(array) ** 2) for array in repeated]
    return float(np.sqrt(np.mean(squares))) if squares else 0.0
