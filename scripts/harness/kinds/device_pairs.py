"""Copies from each GPU of a node to each other, one pair at a time, and the links between them.

One process copies, between its own device and those of the others, which wait. So pairs do not
share bandwidth. Received data are compared with what was sent. Standard library and numpy.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Dict, List, Mapping, Tuple

from harness.adapter import Unsupported
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, point
from harness.kinds.transfer import check
from harness.measuring import blocks
from harness.telemetry import links
from harness.transfers import PairTransfers

_ITEM = 4  # bytes of a float32


class DevicePairs(Kind):
    """Copies between GPUs: GB/s from each to each other."""

    needs = PairTransfers
    unsupported_on_host = (
        "devices that are cores share the host's memory; collective with the operation "
        "send_receive is how two of them exchange something"
    )
    independent_ranks = True
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("bytes", at_least(_ITEM), "bytes", "of each array", 2**28),
        *blocks.parameters("a pair", 0.02),
    )

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        size = workload.parameters["bytes"] // _ITEM * _ITEM
        pairs = pairs_of(workload.case.devices_per_node)

        def bandwidth(rank: Mapping[str, Any], pair: Tuple[int, int]) -> float:
            return float(1e-9 * size / blocks.operation_seconds(rank, at(pair)))

        def slowest(rank: Mapping[str, Any]) -> float:
            return min(bandwidth(rank, pair) for pair in pairs)

        def of_pair(pair: Tuple[int, int]) -> Tuple[str, Metric]:
            metric = Metric("GB/s", "higher", "first", partial(bandwidth, pair=pair))
            return point("bandwidth", at(pair), metric)

        return {
            "slowest_bandwidth": Metric("GB/s", "higher", "first", slowest),
            **dict(map(of_pair, pairs)),
        }

    def measure(self, context: Context) -> None:
        case, rank_context = context.workload.case, context.rank_context
        if case.nodes > 1:
            raise Unsupported("the two devices of a pair are of one node: say nodes: 1")
        if case.devices_per_node == 1:
            raise Unsupported("one device has no other to copy to")
        with blocks.recorded_blocks(context) as timed:
            if rank_context.rank == 0:
                self._copy(context, timed)
            context.barrier()

    def _copy(self, context: Context, timed: List[Dict[str, Any]]) -> None:
        import numpy as np

        adapter, fields = context.adapter, context.fields
        parameters, devices = context.workload.parameters, context.workload.case.devices_per_node
        topology = links.find(os.environ, devices)
        fields["links"] = [{**at(pair), **topology.between(*pair)} for pair in pairs_of(devices)]
        fields["absent"] = topology.absent
        topology.close()
        random = np.random.RandomState(adapter.rank_context.seed)
        array = random.standard_normal(parameters["bytes"] // _ITEM).astype(np.float32)
        for pair in pairs_of(devices):
            direction = "from {from} to {to}".format(**at(pair))
            context.report.enter(direction)
            copied = adapter.transfer_between(*pair, array)
            taken = blocks.measure(context, copied, together=False)
            check(copied.result(), array, direction)
            timed.append({"at": at(pair), **taken})


def pairs_of(devices: int) -> List[Tuple[int, int]]:
    """Return sender and receiver of all pairs, in both directions."""
    return [
        (source, target)
        for source in range(devices)
        for target in range(devices)
        if source != target
    ]


def at(pair: Tuple[int, int]) -> Dict[str, str]:
    """Return the point of a run. Values are text, because a device's number is no size."""
    return {"from": f"gpu-{pair[0]}", "to": f"gpu-{pair[1]}"}
