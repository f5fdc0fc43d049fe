"""Order of the repeats of a case on its two sides, and pairs of runs close in time.

The order, one side after the other or interleaved, follows from the start times of the runs. Runs
of a pair are close enough in time to have seen the same state of the machine: the gap between the
two runs, from the end of one to the start of the other, is shorter than the time from the start of
one repeat to that of the next (the median on both sides). This holds for all repeats of a suite
with variants, whose runs of a case are next to each other, and for none if one set was measured
after the other. A run of another repeat may be nearer: the last case of a round may be the first of
the next. A repeat that was retried long after its partner is no pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..cases.conditions import Parameters
from ..statistics import descriptive
from .run import Run

INTERLEAVED, ONE_AFTER_THE_OTHER = "interleaved", "one after the other"


class _Timed(NamedTuple):
    """A value with its ``start`` and ``end`` in seconds since the epoch."""

    start: float
    end: float
    value: float


def ratios(
    below: Sequence[Run], above: Sequence[Run], metric: str, point: Parameters = ()
) -> list[float]:
    """Return the ratio above / below of the metric for every pair, in the order of the repeats.
    Runs without a value or a known time are in no pair, nor are repeats that one side has twice."""
    one, other = _by_repeat(below, metric, point), _by_repeat(above, metric, point)
    both = sorted(one.keys() & other.keys())
    steps = [*_steps(one, both), *_steps(other, both)]
    if not steps:
        return []
    apart = descriptive.median(steps)
    return [
        other[repeat].value / one[repeat].value
        for repeat in both
        if _between(one[repeat], other[repeat]) < apart
    ]


def order(base: Sequence[Run], candidate: Sequence[Run]) -> str:
    """Return ONE_AFTER_THE_OTHER if all runs of one side started before the other's, else
    INTERLEAVED. Return "" if a start time is unknown."""
    one, other = (
        [run.started for run in side if run.started is not None] for side in (base, candidate)
    )
    if not one or not other or len(one) + len(other) < len(base) + len(candidate):
        return ""
    return ONE_AFTER_THE_OTHER if max(one) < min(other) or max(other) < min(one) else INTERLEAVED


def _by_repeat(runs: Sequence[Run], metric: str, point: Parameters) -> dict[int, _Timed]:
    counted = Counter(run.repeat for run in runs)
    return {
        run.repeat: _Timed(run.started, run.started + run.wall_seconds, value)
        for run in runs
        if run.started is not None and run.wall_seconds is not None
        if (value := run.value(metric, point)) is not None and counted[run.repeat] == 1
    }


def _steps(found: Mapping[int, _Timed], repeats: Sequence[int]) -> list[float]:
    """Return the seconds from the start of each repeat to that of the next."""
    starts = sorted(found[repeat].start for repeat in repeats)
    return [later - earlier for earlier, later in pairwise(starts)]


def _between(first: _Timed, second: _Timed) -> float:
    """Return the seconds between two runs; 0 if they overlap."""
    return max(0.0, max(first.start, second.start) - min(first.end, second.end))
