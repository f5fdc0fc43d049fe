"""In which order the repeats of a case were measured on its two sides, from the moments at which
they started: one side after the other, or interleaved; and which of them are pairs, close enough in
time to have seen the same state of the machine.

A repeat is a pair where less time went by between its two runs, from the end of one to the start of
the other, than from the start of one repeat to that of the next (the median on both sides). That
holds of all repeats of a suite with variants, in which those of a case are run next to each other,
and of none where one set was measured after the other. It is not asked that no run of another
repeat was nearer: the last case of a round may be the first of the next. A repeat that was tried
again long after its partner is none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from ..cases.conditions import Parameters
from ..records.run import Run
from ..statistics import descriptive

INTERLEAVED, ONE_AFTER_THE_OTHER = "interleaved", "one after the other"


class _Timed(NamedTuple):
    """``start`` and ``end`` in seconds of the epoch."""

    start: float
    end: float
    value: float


def ratios(
    below: Sequence[Run], above: Sequence[Run], metric: str, point: Parameters = ()
) -> list[float]:
    """The metric of one side over that of the other in every pair, in the order of the repeats.
    What has no value or no known time is in no pair, nor what one side has several of."""
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
    """ONE_AFTER_THE_OTHER where all runs of one side were started before any of the other's, else
    INTERLEAVED; "" where it is not known of all."""
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
    """Seconds from one of these repeats to the next."""
    starts = sorted(found[repeat].start for repeat in repeats)
    return [later - earlier for earlier, later in pairwise(starts)]


def _between(one: _Timed, other: _Timed) -> float:
    """Seconds in which neither ran; 0 where they overlap."""
    return max(0.0, max(one.start, other.start) - min(one.end, other.end))
