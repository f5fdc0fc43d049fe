"""Copies from each GPU of a node to every other GPU, one pair at a time.

Rank 0 makes all copies, also between the devices of other ranks, which wait. So pairs do not share
bandwidth. Received data are compared with sent data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Dict, Iterator, List, Tuple

from harness.adapter import Unsupported
from harness.capabilities import PairTransfers
from harness.kind import Context, Metric, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.operands import check_result
from harness.measuring.sweep import Block, GridPoint, Sweep, mean, per_second

_ITEM = 4  # bytes of a float32
Pair = Tuple[int, int]


class DevicePairs(Sweep):
    """Copies between GPUs: GB/s from each GPU to every other."""

    needs = PairTransfers
    unsupported_on_host = (
        "on a CPU, devices share the host's memory; measure the benchmark collective with the "
        "operation send_receive instead"
    )
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("bytes", at_least(_ITEM), "bytes", "of each array", 2**28),
        *blocks.parameters("a pair", 0.02),
    )
    summaries = (
        ("slowest_bandwidth", "bandwidth", min),
        ("fastest_bandwidth", "bandwidth", max),
        ("mean_bandwidth", "bandwidth", mean),
    )

    def grid(self, workload: Workload) -> List[GridPoint]:
        every = range(workload.case.devices_per_node)
        pairs = [(sender, receiver) for sender in every for receiver in every if sender != receiver]
        # Values are text, because the index of a device is not a size.
        return [GridPoint({"from": f"gpu-{a}", "to": f"gpu-{b}"}, (a, b)) for a, b in pairs]

    def figures(self, workload: Workload, subject: Pair) -> Dict[str, Metric]:
        size = workload.parameters["bytes"] // _ITEM * _ITEM
        return {"bandwidth": Metric("GB/s", "higher", "first", per_second(1e-9 * size))}

    def measure(self, context: Context) -> None:
        import numpy as np

        case = context.workload.case
        if case.nodes > 1:
            raise Unsupported("the two devices of a pair are on one node: set nodes: 1")
        if case.devices_per_node == 1:
            raise Unsupported("one device has no other to copy to")
        if context.rank_context.rank == 0:
            size = context.workload.parameters["bytes"] // _ITEM
            self._array: Any = blocks.random_of(context).standard_normal(size).astype(np.float32)
            # the other ranks wait at a single barrier, after all pairs
            super().measure(replace(context, barrier=lambda: None))
            context.barrier()
        else:
            with blocks.recorded_blocks(context):
                context.barrier()

    def run(self, context: Context, subject: Pair) -> Iterator[Block]:
        copied = context.adapter.transfer_between(*subject, self._array)
        taken = blocks.measure(context, copied)
        check_result(copied.result(), self._array, "a copy from gpu-{} to gpu-{}".format(*subject))
        yield taken
