"""Latency of a memory load by working set, measured by a chain of pointers.

Working sets range from 4 KiB to four times the last-level cache, so each cache shows as a step. One
core of each device follows its own chain; several devices start together. No framework. Standard
library and numpy.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Dict, List, Mapping

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, point
from harness.measuring import blocks
from harness.measuring.micro import chase, stream

#: Default size of the largest working set, relative to the last-level cache.
TIMES_CACHE = 4
#: Steps that load a working set into the caches, and the least number of steps of a block.
_WARM, _FEWEST = 2**23, 1000


class MemoryLatency(Kind):
    """Memory latency: nanoseconds per load by working set, on the slowest device."""

    needs = None
    independent_ranks = True
    parameters = (
        Parameter(
            "largest_bytes", at_least(0), "bytes",
            f"of the largest working set; 0: {TIMES_CACHE} times the last cache", 0,
        ),
        *blocks.parameters("a size", 0.02),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        sizes = _sizes(workload)

        def latency(size: int) -> Metric:
            return Metric("ns", "lower", "max", lambda rank: _nanoseconds(rank, size))

        return {
            "memory_latency": latency(sizes[-1]),  # of the largest: what no cache hides
            **dict(point("latency", {"bytes": size}, latency(size)) for size in sizes),
        }

    def measure(self, context: Context) -> None:
        fields, parameters = context.fields, context.workload.parameters
        cache = fields["last_cache_bytes"] = stream.largest_cache()
        if not (cache or parameters["largest_bytes"]):
            raise Mismatch("the kernel does not report the size of the caches: set largest_bytes")
        sizes = _sizes(context.workload)
        most = stream.most_bytes() // context.workload.case.devices_per_node
        if not parameters["largest_bytes"] and sizes[-1] > most:
            raise Mismatch(
                f"{TIMES_CACHE} times the last cache is more than an eighth of the free memory: "
                f"set largest_bytes to at most {most}"
            )
        kernels = context.phase("compile", chase.kernels)
        room = stream.aligned(sizes[-1] // 8)
        with blocks.recorded_blocks(context) as points:
            for size in sizes:
                context.report.enter(f"{size} bytes")
                chain = chase.Chain(kernels, room, size, context.rank_context.seed)
                steps = _steps(chain, parameters["block_seconds"])
                context.barrier()
                work = functools.partial(chain.run, steps)
                taken = [blocks.elapsed(work) for _ in range(parameters["blocks"])]
                chain.check()
                points.append({"at": {"bytes": size}, "operations": steps, "seconds": taken})


def _sizes(workload: Workload) -> List[int]:
    largest = workload.parameters["largest_bytes"] or TIMES_CACHE * stream.largest_cache()
    return chase.sizes(largest)


def _steps(chain: chase.Chain, seconds: float) -> int:
    """Return how many steps take ``seconds``, from a pass that is not counted."""
    count = max(_FEWEST, min(chain.lines, _WARM))
    taken = blocks.elapsed(lambda: chain.run(count))
    if count == _FEWEST:  # a pass of so few lines tells little
        taken = blocks.elapsed(lambda: chain.run(count))
    return max(_FEWEST, math.ceil(count * seconds / max(taken, 1e-9)))


def _nanoseconds(rank: Mapping[str, Any], size: int) -> float:
    """Return the nanoseconds of a load from ``size`` bytes, in the median block."""
    return 1e9 * blocks.operation_seconds(rank, {"bytes": size})
