"""Bandwidth of the host's memory by the kernels of STREAM, compiled when needed.

One core is a run of one device with one core. All cores are a run of as many devices, each with its
own arrays, started together. No framework. Standard library and numpy.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Dict, Iterator, List

from harness.adapter import Mismatch
from harness.kind import TOPOLOGY, Context, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.checks import check_cores
from harness.measuring.micro import host_memory
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, bandwidth

#: Size of all arrays of one name relative to the last-level cache, as STREAM's rules demand.
TIMES_CACHE = 4
_ARRAYS = 3  # of a device
#: Largest relative error of the arrays: STREAM's own bound.
ROUNDING = 1e-13


class Memory(Sweep):
    """Host memory: bytes per second of copy, scale, add and triad, summed over all devices."""

    needs = None
    names_points = False
    axes = TOPOLOGY
    parameters = (
        Parameter(
            "array_bytes", at_least(0), "bytes",
            f"of each array of a device; 0: {TIMES_CACHE} times the last cache, shared by all, but "
            "at most an eighth of the free memory in all",
            0,
        ),
        Parameter("rounds", at_least(2), "", "of the four kernels; the first is not counted", 11),
    )  # fmt: skip

    def grid(self, workload: Workload) -> List[GridPoint]:
        return [GridPoint({}, None)]  # the kernels take turns

    def figures(self, workload: Workload, subject: None) -> Dict[str, PointFigure]:
        return {
            kernel: PointFigure("GB/s", "higher", "sum", bandwidth, {"kernel": kernel})
            for kernel in ("triad", "copy", "scale", "add")
        }

    def measure(self, context: Context) -> None:
        fields, parameters = context.fields, context.workload.parameters
        cache = fields["last_cache_bytes"] = host_memory.largest_cache()
        devices = context.workload.case.devices_per_node
        elements = max(1, (parameters["array_bytes"] or default_bytes(cache, devices)) // 8)
        threads = fields["threads"] = max(1, len(check_cores(context.cores)))
        kernels = context.phase("compile", host_memory.compiled)
        seed = context.rank_context.seed
        self._held: host_memory.Stream = context.phase(
            "arrays", lambda: host_memory.Stream(kernels, elements, threads, seed)
        )
        super().measure(context)

    def run(self, context: Context, subject: None) -> Iterator[Block]:
        held = self._held
        before = held.a.copy()
        seconds: Dict[str, List[float]] = {kernel: [] for kernel in host_memory.MOVED}
        context.barrier()
        for _ in range(context.workload.parameters["rounds"]):
            for kernel, durations in seconds.items():
                durations.append(blocks.elapsed(partial(held.run, kernel)))
        check(held, before)
        for kernel, durations in seconds.items():
            moved = host_memory.MOVED[kernel] * held.a.nbytes
            timed = {"operations": 1, "seconds": durations[1:], "bytes": moved}
            yield {"part": {"kernel": kernel}, **timed}


def default_bytes(cache: int, devices: int) -> int:
    """Return the bytes of an array of each of a node's ``devices``. Raises Mismatch where the size
    of the last-level ``cache`` is unknown."""
    if not cache:
        raise Mismatch("the kernel does not report the size of the caches: set array_bytes")
    return min(TIMES_CACHE * cache, host_memory.most_bytes() // _ARRAYS) // devices


def check(held: host_memory.Stream, before: Any) -> None:
    """Raise Mismatch where the arrays are not what the kernels compute. ``before``: initial values
    of the first array."""
    for name, factor in {"a": 1, "b": host_memory.SCALAR, "c": 1 + host_memory.SCALAR}.items():
        actual, expected = getattr(held, name), factor * before
        wrong = ~(abs(actual - expected) <= 100 * ROUNDING * expected)
        if wrong.any():
            raise Mismatch(f"{int(wrong.sum())} of {actual.size} elements of {name} are wrong")
