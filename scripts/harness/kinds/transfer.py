"""Copies from the host to the device, back, and within the device, from memory that is pinned or
not, in sizes from 64 KiB on, each four times the one before.

A GB is 10^9 bytes that have arrived; that a copy within the device reads them there, too, does not
count. What arrived is compared with what was sent. Standard library and numpy.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Tuple

from harness.adapter import Mismatch, Unsupported
from harness.kind import (
    Context,
    Kind,
    Metric,
    Parameter,
    Subject,
    above_zero,
    at_least,
    one_of,
    point,
)
from harness.measuring import blocks, libraries
from harness.measuring.checks import check_cores
from harness.transfers import DIRECTIONS, Transfers

SMALLEST, TIMES = 2**16, 4
_ITEM = 4  # bytes of a float32


class Transfer(Kind):
    """GB/s in each direction, of the largest size and at each. Of several devices, which copy at
    the same time, the slowest counts."""

    needs = Transfers
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("pinned", one_of("yes", "no"), "", "whether the host's memory is locked", "yes"),
        Parameter("largest_bytes", at_least(SMALLEST), "bytes", "the largest size", 2**28),
        Parameter("blocks", at_least(1), "", "how often a size is timed", blocks.BLOCKS),
        Parameter("block_seconds", above_zero, "s", "how long each of them takes at least", 0.02),
    )

    def metrics(self, subject: Subject) -> Dict[str, Metric]:
        sizes = sizes_to(subject.parameters["largest_bytes"])

        def bandwidth(direction: str, size: int) -> Metric:
            return Metric("GB/s", "higher", "min", lambda rank: _bandwidth(rank, direction, size))

        def at(direction: str, size: int) -> Tuple[str, Metric]:
            return point(f"{direction}_bandwidth", {"bytes": size}, bandwidth(direction, size))

        largest = {direction: bandwidth(direction, sizes[-1]) for direction in DIRECTIONS}
        return {**largest, **dict(at(one, size) for one in DIRECTIONS for size in sizes)}

    def measure(self, context: Context) -> None:
        import numpy as np

        if context.place.accelerator == "cpu":
            raise Unsupported("the device is the host")
        adapter, fields = context.adapter, context.fields
        parameters = context.subject.parameters
        random = np.random.RandomState(adapter.place.seed)
        found: List[Dict[str, Any]] = []
        fields["blocks"] = found
        start = time.perf_counter()
        for size in sizes_to(parameters["largest_bytes"]):
            array = random.standard_normal(size // _ITEM).astype(np.float32)
            for direction in DIRECTIONS:
                context.report.enter(f"{direction} of {size} bytes")
                copied = adapter.transfer(direction, array, parameters["pinned"] == "yes")
                taken = blocks.measure(
                    adapter, copied.run, copied.result, parameters["blocks"],
                    parameters["block_seconds"], context.barrier,
                )  # fmt: skip
                check(copied.result(), array, f"{direction} of {size} bytes")
                found.append({"at": {"direction": direction, "bytes": size}, **taken})
        fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
        fields["cores"] = check_cores(context.cores)
        fields["libraries"] = libraries.in_use()


def sizes_to(largest: int) -> List[int]:
    """In bytes, whole numbers of float32."""
    sizes = [SMALLEST]
    while TIMES * sizes[-1] <= largest:
        sizes.append(TIMES * sizes[-1])
    return sorted({*sizes, largest // _ITEM * _ITEM})


def check(arrived: Any, sent: Any, what: str) -> None:
    """Raises Mismatch where a bit differs."""
    import numpy as np

    arrived = np.asarray(arrived)
    if arrived.shape != sent.shape:
        raise Mismatch(f"{what}: {arrived.size} numbers arrived, not {sent.size}")
    wrong = int((arrived != sent).sum())
    if wrong:
        raise Mismatch(f"{what}: {wrong} of {sent.size} numbers arrived as others")


def _bandwidth(rank: Mapping[str, Any], direction: str, size: int) -> float:
    found = blocks.seconds_of_one(rank, {"direction": direction, "bytes": size})
    if found is None:
        raise KeyError(f"no blocks of {direction} at {size} bytes")
    return 1e-9 * size / found
