"""Order of the repeats of a case on its two sides, and pairs of repeats that were interleaved.

A suite with variants measures the runs of a repeat next to each other, so that both runs of a pair
have seen the same state of the machine. Sets that were measured one after the other have no pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..cases.conditions import Parameters
from .run import Run

INTERLEAVED, ONE_AFTER_THE_OTHER = "interleaved", "one after the other"


def ratios(
    below: Sequence[Run], above: Sequence[Run], metric: str, point: Parameters = ()
) -> list[float]:
    """Return the ratio above / below of the metric for every pair, in the order of the repeats.

    A pair is two runs of the same repeat, if the sides were interleaved. Runs without a value are
    in no pair, and neither are repeats that one side has twice."""
    if order(below, above) != INTERLEAVED:
        return []
    one, other = _by_repeat(below, metric, point), _by_repeat(above, metric, point)
    return [other[repeat] / one[repeat] for repeat in sorted(one.keys() & other.keys())]


def order(base: Sequence[Run], candidate: Sequence[Run]) -> str:
    """Return ONE_AFTER_THE_OTHER if all runs of one side started before the other's, else
    INTERLEAVED. Return "" if a start time is unknown."""
    one, other = (
        [run.started for run in side if run.started is not None] for side in (base, candidate)
    )
    if not one or not other or len(one) + len(other) < len(base) + len(candidate):
        return ""
    return ONE_AFTER_THE_OTHER if max(one) < min(other) or max(other) < min(one) else INTERLEAVED


def _by_repeat(runs: Sequence[Run], metric: str, point: Parameters) -> dict[int, float]:
    counted = Counter(run.repeat for run in runs)
    return {
        run.repeat: value
        for run in runs
        if (value := run.value(metric, point)) is not None and counted[run.repeat] == 1
    }
