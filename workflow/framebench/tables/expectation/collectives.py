"""Expected time of a gradient all-reduce, from the benchmark ``collective``.

The benchmark ran in the same framework between as many devices of the same machine. Between two
measured sizes, time is linear in bytes, as for a latency and a bandwidth (Hockney, *Parallel
Computing* 20, 1994). Below the smallest size its time is used. Beyond the largest there is no
expectation."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from core import precisions

from ...machine.identities import same
from ...records.run import Run
from ...statistics import descriptive
from ..results import CaseResult, CaseResults

KIND, OPERATION, FLOAT32 = "collective", "all_reduce", "float32"
#: Name of the metric, and of the parameter with its size.
_TIME, _BYTES = "time", "bytes"
_MICROSECOND = 1e-6

#: Pairs of bytes and seconds, by rising size.
Times = Sequence[tuple[int, float]]


class AllReduceLookup:
    """Lookup of measured all-reduces by the ranks of a run."""

    def __init__(self, others: CaseResults) -> None:
        """Index cases of benchmarks other than steps."""
        self._found: dict[tuple[Any, ...], dict[Any, CaseResult]] = defaultdict(dict)
        for result in others.values():
            parameters = dict(result.case.parameters)
            if (
                result.case.mode == KIND
                and parameters.get("operation") == OPERATION
                and any(map(times_of, result.ok))
            ):
                key = (*_ranks(result.ok[0]), parameters.get("dtype", FLOAT32))
                # A case's first result is its principal metric, with the flags of its repeats.
                self._found[key].setdefault((result.case, result.conditions), result)

    def expected(self, run: Run, sizes: Sequence[int]) -> tuple[float, CaseResult] | None:
        """Return the seconds of all-reduces of ``sizes`` bytes one after the other, as the median
        over repeats of the case measured between ranks like those of ``run``; and that case.

        Of several cases, the one with the largest size. None if a size exceeds it."""
        if not run.hardware:
            return None
        known = self._found.get((*_ranks(run), _dtype_of(run)), {}).values()
        here = [result for result in known if same(result.ok[0].machine, run.machine)]
        measured = max(here, key=_largest, default=None)
        if not sizes or measured is None or max(sizes) > _largest(measured):
            return None
        totals = [
            sum(_between(times, size) for size in sizes)
            for one in measured.ok
            if (times := times_of(one))
        ]
        return descriptive.median(totals), measured


def _dtype_of(run: Run) -> str:
    """Return the dtype of gradients in the run's precision."""
    precision = precisions.known().get(run.case.precision)
    return (precision.storage if precision else "") or FLOAT32


def _largest(result: CaseResult) -> int:
    """Return the size in bytes of the largest all-reduce that all repeats have."""
    return min(times[-1][0] for run in result.ok if (times := times_of(run)))


def times_of(run: Run) -> Times:
    """Return the all-reduce times of a run; [] if it has none."""
    return sorted(
        (int(dict(metric.point)[_BYTES]), _MICROSECOND * metric.value)
        for metric in run.metrics
        if metric.name == _TIME and metric.value is not None and _BYTES in dict(metric.point)
    )


def _between(times: Times, size: int) -> float:
    index = bisect_left([measured for measured, _ in times], size)
    if index == 0:
        return times[0][1]
    (below, short), (above, long) = times[index - 1], times[index]
    return short + (long - short) * (size - below) / (above - below)


def _ranks(run: Run) -> tuple[Any, ...]:
    case, where = run.case, run.conditions
    return (
        case.framework, case.framework_version, case.nodes, case.devices_per_node, run.hardware,
        where.accelerator, where.cores_per_device,
    )  # fmt: skip
