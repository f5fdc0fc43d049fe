"""Latency of a memory load by working set, measured by a chain of pointers.

Each cache line of a working set holds the address of another, in a random cycle through all of
them, so that neither order nor prefetching predicts the next (as lat_mem_rd of lmbench; McVoy and
Staelin, "lmbench: Portable Tools for Performance Analysis", 1996). Working sets range from 4 KiB to
four times the last-level cache, so each cache shows as a step. One core of each device follows its
own chain; several devices start together. No framework."""

from __future__ import annotations

import functools
from operator import itemgetter
from typing import Any, Dict, Iterator, List

from harness.adapter import Mismatch
from harness.kind import TOPOLOGY, Context, Metric, Parameter, Workload, at_least
from harness.kinds import memory
from harness.kinds.memory import LINE, TIMES_CACHE
from harness.measuring import blocks
from harness.measuring.sweep import Block, GridPoint, Sweep, scaled

#: Bytes of the smallest working set.
SMALLEST = 4096


class MemoryLatency(Sweep):
    """Memory latency: nanoseconds per load by working set, on the slowest device."""

    needs = None
    axes = TOPOLOGY
    parameters = (
        Parameter(
            "largest_bytes", at_least(0), "bytes",
            f"bytes of the largest working set; 0: {TIMES_CACHE} times the last-level cache", 0,
        ),
        *blocks.parameters("a size", 0.02),
    )  # fmt: skip
    # latency of the largest working set, which no cache hides
    summaries = (("memory_latency", "latency", itemgetter(-1)),)

    def grid(self, workload: Workload) -> List[GridPoint]:
        caches = TIMES_CACHE * memory.largest_cache()
        largest = workload.parameters["largest_bytes"] or caches
        sizes = [SMALLEST]
        while 2 * sizes[-1] <= largest:
            sizes.append(2 * sizes[-1])
        sizes = sorted({*sizes, max(SMALLEST, largest // LINE * LINE)})  # whole cache lines
        return [GridPoint({"bytes": size}, size) for size in sizes]

    def figures(self, workload: Workload, subject: int) -> Dict[str, Metric]:
        return {"latency": Metric("ns", "lower", "max", scaled(1e9))}

    def measure(self, context: Context) -> None:
        context.fields["last_cache_bytes"] = memory.largest_cache()
        size = self.grid(context.workload)[-1].subject
        if not context.workload.parameters["largest_bytes"]:
            devices = context.workload.case.devices_per_node
            most = memory.default_bytes("largest_bytes", devices)
            if size > most:
                raise Mismatch(
                    f"{TIMES_CACHE} times the last-level cache is more than an eighth of the free "
                    f"memory: set largest_bytes to at most {most}"
                )
        self._kernels: Any = context.phase("compile", memory.compiled)
        self._room: Any = memory.aligned(size // 8)
        super().measure(context)

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        parameters = context.workload.parameters
        chain = Chain(self._kernels, self._room, subject, blocks.random_of(context))

        def timed(steps: int) -> float:
            return blocks.elapsed(functools.partial(chain.run, steps))

        timed(chain.lines)  # loads the working set into the caches
        steps = blocks.runs_of_block(timed, parameters["block_seconds"], 2**40)
        context.barrier()
        taken = [timed(steps) for _ in range(parameters["blocks"])]
        chain.check()
        yield {"operations": steps, "seconds": taken}


class Chain:
    """Cycle through the first ``size`` bytes of ``room``, a float64 array.

    ``lines``: number of its cache lines."""

    def __init__(self, kernels: Any, room: Any, size: int, random: Any) -> None:
        import numpy as np

        self.lines = size // LINE
        self._chase = kernels.chase
        self._base = room.ctypes.data
        self._order = random.permutation(self.lines)
        lines = room[: size // room.itemsize].view(np.int64).reshape(self.lines, -1)
        lines[self._order, 0] = self._base + LINE * np.roll(self._order, -1)
        self._steps = 0
        self._place = self._address(0)

    def _address(self, step: int) -> int:
        return int(self._base + LINE * self._order[step % self.lines])

    def run(self, steps: int) -> None:
        """Follow ``steps`` pointers, from where the last run ended."""
        self._place = self._chase(self._place, steps)
        self._steps += steps

    def check(self) -> None:
        """Raise Mismatch where the chain is not at the expected line."""
        expected = self._address(self._steps)
        if self._place != expected:
            raise Mismatch(
                f"{self._steps} steps through {self.lines} lines ended {self._place - expected} "
                "bytes from the expected place"
            )
