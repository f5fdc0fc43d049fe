"""Copies from the host to the device, back, and within the device, from pinned or pageable memory.

Sizes start at 64 KiB, each four times the one before. A GB is 10^9 bytes that arrived; the read of
a copy within the device does not count. Received data are compared with what was sent. Standard
library and numpy.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, ContextManager, Dict, List, Mapping, Tuple

from harness.adapter import Mismatch
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of, point
from harness.machine import cores
from harness.measuring import blocks
from harness.telemetry import links
from harness.transfers import DIRECTIONS, HOST_TO_DEVICE, Transfers

SMALLEST, TIMES = 2**16, 4
_ITEM = 4  # bytes of a float32
#: Value for host memory near the device.
NEAR = "near"


def host_node(text: str) -> str:
    """Return NEAR, or the number of a NUMA node: the type of a parameter."""
    if text == NEAR:
        return text
    if not text.isdecimal():
        raise ValueError(f"must be {NEAR}, or the number of a NUMA node")
    return str(int(text))


class Transfer(Kind):
    """Copies of host and device: GB/s each way, at the largest size and at each; link to the host.

    Several devices copy at the same time, and the slowest counts."""

    needs = Transfers
    unsupported_on_host = "the device is the host"
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("pinned", one_of("yes", "no"), "", "whether the host's memory is locked", "yes"),
        Parameter(
            "host_node", host_node, "",
            f"the NUMA node that the host's memory is of; {NEAR}: that of the rank's cores", NEAR,
        ),
        Parameter("largest_bytes", at_least(SMALLEST), "bytes", "the largest size", 2**28),
        *blocks.parameters("a size", 0.02),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        sizes = sizes_to(workload.parameters["largest_bytes"])

        def bandwidth(direction: str, size: int) -> Metric:
            return Metric("GB/s", "higher", "min", lambda rank: _bandwidth(rank, direction, size))

        def at(direction: str, size: int) -> Tuple[str, Metric]:
            return point(f"{direction}_bandwidth", {"bytes": size}, bandwidth(direction, size))

        def of_link(name: str) -> Metric:
            return Metric(links.UNITS[name], "higher", "min", lambda rank: rank["link"][name])

        largest = {direction: bandwidth(direction, sizes[-1]) for direction in DIRECTIONS}
        return {
            **largest,
            **{name: of_link(name) for name in links.UNITS},
            **dict(at(direction, size) for direction in DIRECTIONS for size in sizes),
        }

    def measure(self, context: Context) -> None:
        import numpy as np

        adapter, fields = context.adapter, context.fields
        parameters = context.workload.parameters
        random = np.random.RandomState(adapter.rank_context.seed)
        rank = context.rank_context.local_rank
        link = links.HostLink(os.environ, rank)
        with blocks.recorded_blocks(context) as points, _host_memory(parameters["host_node"]):
            fields["numa_nodes"] = cores.numa_nodes(os.sched_getaffinity(0))
            for size in sizes_to(parameters["largest_bytes"]):
                array = random.standard_normal(size // _ITEM).astype(np.float32)
                for direction in DIRECTIONS:
                    context.report.enter(f"{direction} of {size} bytes")
                    copied = adapter.transfer(direction, array, parameters["pinned"] == "yes")
                    taken = blocks.measure(context, copied)
                    if direction == HOST_TO_DEVICE:  # idle, a link may be slower
                        fields["link"] = link.read()
                    check(copied.result(), array, f"{direction} of {size} bytes")
                    points.append({"at": {"direction": direction, "bytes": size}, **taken})
        fields["absent"] = link.absent
        link.close()


def _host_memory(node: str) -> ContextManager[None]:
    return contextlib.nullcontext() if node == NEAR else cores.on_numa_node(int(node))


def sizes_to(largest: int) -> List[int]:
    """Return the sizes in bytes, from SMALLEST to ``largest``, each TIMES the one before; all are
    whole numbers of float32."""
    sizes = [SMALLEST]
    while TIMES * sizes[-1] <= largest:
        sizes.append(TIMES * sizes[-1])
    return sorted({*sizes, largest // _ITEM * _ITEM})


def check(arrived: Any, sent: Any, description: str) -> None:
    """Raise Mismatch where a bit differs."""
    import numpy as np

    arrived = np.asarray(arrived)
    if arrived.shape != sent.shape:
        raise Mismatch(f"{description}: {arrived.size} numbers arrived, not {sent.size}")
    wrong = int((arrived != sent).sum())
    if wrong:
        raise Mismatch(f"{description}: {wrong} of {sent.size} numbers arrived as others")


def _bandwidth(rank: Mapping[str, Any], direction: str, size: int) -> float:
    return 1e-9 * size / blocks.operation_seconds(rank, {"direction": direction, "bytes": size})
