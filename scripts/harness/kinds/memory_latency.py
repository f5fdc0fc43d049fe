"""Latency of a memory load by working set, measured by a chain of pointers.

Working sets range from 4 KiB to four times the last-level cache, so each cache shows as a step. One
core of each device follows its own chain; several devices start together. No framework. Standard
library and numpy.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Dict, Iterator, List

from harness.adapter import Mismatch
from harness.kind import TOPOLOGY, Context, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.micro import host_memory
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, last, scaled

#: Default size of the largest working set, relative to the last-level cache.
TIMES_CACHE = 4
#: Steps that load a working set into the caches, and the least number of steps of a block.
_WARM, _FEWEST = 2**23, 1000


class MemoryLatency(Sweep):
    """Memory latency: nanoseconds per load by working set, on the slowest device."""

    needs = None
    axes = TOPOLOGY
    parameters = (
        Parameter(
            "largest_bytes", at_least(0), "bytes",
            f"of the largest working set; 0: {TIMES_CACHE} times the last cache", 0,
        ),
        *blocks.parameters("a size", 0.02),
    )  # fmt: skip
    summaries = (("memory_latency", "latency", last),)  # of the largest: what no cache hides

    def grid(self, workload: Workload) -> List[GridPoint]:
        largest = workload.parameters["largest_bytes"] or TIMES_CACHE * host_memory.largest_cache()
        return [GridPoint({"bytes": size}, size) for size in host_memory.working_sets(largest)]

    def figures(self, workload: Workload, subject: int) -> Dict[str, PointFigure]:
        return {"latency": PointFigure("ns", "lower", "max", scaled(1e9))}

    def measure(self, context: Context) -> None:
        largest = context.workload.parameters["largest_bytes"]
        cache = context.fields["last_cache_bytes"] = host_memory.largest_cache()
        if not (cache or largest):
            raise Mismatch("the kernel does not report the size of the caches: set largest_bytes")
        size = self.grid(context.workload)[-1].subject
        most = host_memory.most_bytes() // context.workload.case.devices_per_node
        if not largest and size > most:
            raise Mismatch(
                f"{TIMES_CACHE} times the last cache is more than an eighth of the free memory: "
                f"set largest_bytes to at most {most}"
            )
        self._kernels: Any = context.phase("compile", host_memory.compiled)
        self._room: Any = host_memory.aligned(size // 8)
        super().measure(context)

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        parameters = context.workload.parameters
        chain = host_memory.Chain(self._kernels, self._room, subject, context.rank_context.seed)
        steps = _steps(chain, parameters["block_seconds"])
        context.barrier()
        work = functools.partial(chain.run, steps)
        taken = [blocks.elapsed(work) for _ in range(parameters["blocks"])]
        chain.check()
        yield {"operations": steps, "seconds": taken}


def _steps(chain: host_memory.Chain, seconds: float) -> int:
    """Return how many steps take ``seconds``, from a pass that is not counted."""
    count = max(_FEWEST, min(chain.lines, _WARM))
    taken = blocks.elapsed(lambda: chain.run(count))
    if count == _FEWEST:  # a pass of so few lines tells little
        taken = blocks.elapsed(lambda: chain.run(count))
    return max(_FEWEST, math.ceil(count * seconds / max(taken, 1e-9)))
