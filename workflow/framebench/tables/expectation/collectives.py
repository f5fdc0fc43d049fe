"""What an exchange of gradients should take, by the all-reduces that the kind ``collective``
measured in the same framework, between as many devices of the same machine.

Between two sizes that were measured the time is taken to be linear in the bytes, as it is for a
latency and a bandwidth (Hockney, *Parallel Computing* 20, 1994). Below the smallest it is the
smallest's. Beyond the largest nothing is said.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from core import precisions

from ...machine.identities import same
from ...records.run import Run
from ..results import CaseResult, CaseResults

KIND, OPERATION, FLOAT32 = "collective", "all_reduce", "float32"
#: The metric, and where it is.
_TIME, _BYTES = "time", "bytes"
_MICROSECOND = 1e-6

#: Bytes and seconds, sizes rising.
Times = Sequence[tuple[int, float]]


class AllReduceLookup:
    """The all-reduces of a set of records, by what a run tells of itself."""

    def __init__(self, others: CaseResults) -> None:
        """``others``: cases of other kinds than steps."""
        self._found: dict[tuple[Any, ...], dict[Any, CaseResult]] = defaultdict(dict)
        for result in others.values():
            parameters = dict(result.case.parameters)
            if (
                result.case.mode == KIND
                and parameters.get("operation") == OPERATION
                and any(map(times_of, result.ok))
            ):
                key = (*_ranks(result.ok[0]), parameters.get("dtype", FLOAT32))
                # The first of a case is its principal metric, with the marks of its repeats.
                self._found[key].setdefault((result.case, result.conditions), result)

    def __bool__(self) -> bool:
        return any(self._found.values())

    def of(self, run: Run) -> CaseResult | None:
        """The all-reduces between ranks like those of ``run``, in the dtype of its parameters; of
        several cases that with the largest size."""
        if not run.hardware:
            return None
        found = self._found.get((*_ranks(run), dtype_of(run)), {}).values()
        here = [one for one in found if same(one.ok[0].machine, run.machine)]
        return max(here, key=largest, default=None)


def dtype_of(run: Run) -> str:
    """That gradients of the run's precision are in."""
    precision = precisions.known().get(run.case.precision)
    return (precision.storage if precision else "") or FLOAT32


def largest(result: CaseResult) -> int:
    """Bytes of the largest all-reduce that all repeats have."""
    return min(times[-1][0] for run in result.ok if (times := times_of(run)))


def times_of(run: Run) -> Times:
    """Those of a run of the kind; () where it has none."""
    return sorted(
        (int(dict(one.point)[_BYTES]), _MICROSECOND * one.value)
        for one in run.metrics
        if one.name == _TIME and one.value is not None and _BYTES in dict(one.point)
    )


def expected(times: Times, sizes: Sequence[int]) -> float | None:
    """Seconds of all-reduces of these ``sizes`` in bytes, one after the other; None where one of
    them is larger than all that were measured."""
    if not times or not sizes or max(sizes) > times[-1][0]:
        return None
    return sum(_between(times, size) for size in sizes)


def _between(times: Times, size: int) -> float:
    place = bisect_left([measured for measured, _ in times], size)
    if place == 0:
        return times[0][1]
    (below, short), (above, long) = times[place - 1], times[place]
    return short + (long - short) * (size - below) / (above - below)


def _ranks(run: Run) -> tuple[Any, ...]:
    case, where = run.case, run.conditions
    return (
        case.framework, case.framework_version, case.nodes, case.devices_per_node, run.hardware,
        where.accelerator, where.cores_per_device,
    )  # fmt: skip
