"""Bandwidth of the host's memory by the kernels of STREAM, compiled when needed.

One core is a run of one device with one core. All cores are a run of as many devices, each with its
own arrays, started together. No framework. Standard library and numpy.
"""

from __future__ import annotations

import statistics
import time
from typing import Any, Dict, List, Mapping, Optional

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least
from harness.measuring.checks import check_cores
from harness.measuring.micro import stream

#: Size of all arrays of one name relative to the last-level cache, as STREAM's rules demand.
TIMES_CACHE = 4
_ARRAYS = 3  # of a device
#: Largest relative error of the arrays: STREAM's own bound.
ROUNDING = 1e-13


class Memory(Kind):
    """Host memory: bytes per second of copy, scale, add and triad, summed over all devices."""

    needs = None
    independent_ranks = True
    parameters = (
        Parameter(
            "array_bytes", at_least(0), "bytes",
            f"of each array of a device; 0: {TIMES_CACHE} times the last cache, shared by all, but "
            "at most an eighth of the free memory in all",
            0,
        ),
        Parameter("rounds", at_least(2), "", "of the four kernels; the first is not counted", 11),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        def bandwidth(kernel: str) -> Metric:
            return Metric("GB/s", "higher", "sum", lambda rank: _bandwidth(rank, kernel))

        return {kernel: bandwidth(kernel) for kernel in ("triad", "copy", "scale", "add")}

    def measure(self, context: Context) -> None:
        fields, parameters = context.fields, context.workload.parameters
        cache = fields["last_cache_bytes"] = stream.largest_cache()
        size = parameters["array_bytes"] or default_bytes(
            cache, context.workload.case.devices_per_node
        )
        threads = max(1, len(check_cores(context.cores)))
        kernels = context.phase("compile", stream.compiled)
        held = context.phase(
            "arrays",
            lambda: stream.Stream(kernels, max(1, size // 8), threads, context.rank_context.seed),
        )
        before = held.a.copy()
        seconds: Dict[str, List[float]] = {kernel: [] for kernel in stream.MOVED}
        context.report.enter("timed window")
        context.barrier()
        start = time.perf_counter()
        for number in range(parameters["rounds"]):
            for kernel, durations in seconds.items():
                begin = time.perf_counter()
                held.run(kernel)
                if number:
                    durations.append(time.perf_counter() - begin)
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
        fields["threads"] = threads
        fields["blocks"] = [
            {
                "at": {"kernel": kernel},
                "operations": 1,
                "seconds": durations,
                "bytes": stream.MOVED[kernel] * held.a.nbytes,
            }
            for kernel, durations in seconds.items()
        ]
        fields["cores"] = check_cores(context.cores)
        check(held, before)


def default_bytes(cache: int, devices: int) -> int:
    """Return the bytes of an array of each of a node's ``devices``. Raises Mismatch where the size
    of the last-level ``cache`` is unknown."""
    if not cache:
        raise Mismatch("the kernel does not report the size of the caches: set array_bytes")
    return min(TIMES_CACHE * cache, stream.most_bytes() // _ARRAYS) // devices


def check(held: stream.Stream, before: Any) -> None:
    """Raise Mismatch where the arrays are not what the kernels compute. ``before``: initial values
    of the first array."""
    scalar = stream.SCALAR
    for name, expected in (
        ("a", before),
        ("b", scalar * before),
        ("c", (1 + scalar) * before),
    ):
        actual = getattr(held, name)
        wrong = ~(abs(actual - expected) <= 100 * ROUNDING * expected)
        if wrong.any():
            raise Mismatch(f"{int(wrong.sum())} of {actual.size} elements of {name} are wrong")


def _bandwidth(rank: Mapping[str, Any], kernel: str) -> Optional[float]:
    for block in rank["blocks"]:
        if block["at"] == {"kernel": kernel}:
            return float(1e-9 * block["bytes"] / statistics.median(block["seconds"]))
    return None
