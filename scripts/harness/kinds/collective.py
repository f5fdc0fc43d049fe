"""A collective between all ranks, in sizes from 8 bytes on, each twice the one before: time,
algorithm and bus bandwidth as nccl-tests defines them.

At each size the result is checked before and after the timed blocks. All ranks start a block
together, and it ends when the last of its runs is complete. Arrays that grow with each run are
reset between blocks, so that nothing overflows. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

from harness import communication
from harness.adapter import Unsupported
from harness.communication import CollectiveOperation, Communication
from harness.kind import Context, Parameter, Workload, at_least, one_of
from harness.measuring import blocks
from harness.measuring.micro import collectives
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, mean, per_second, scaled


class Collective(Sweep):
    """Collective alone: microseconds and GB/s at each size, on the slowest rank."""

    needs = Communication
    independent_ranks = False
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("operation", one_of(*communication.OPERATIONS), "", "which collective"),
        Parameter("dtype", one_of(*collectives.ITEM), "", "of its elements", "float32"),
        Parameter("largest_bytes", at_least(8), "bytes", "the largest size", 2**20),
        *blocks.parameters("a size", 0.02),
    )
    summaries = (("average_bus_bandwidth", "bus_bandwidth", mean),)

    def grid(self, workload: Workload) -> List[GridPoint]:
        named, devices = workload.parameters, workload.case.devices
        arguments = (named["operation"], named["dtype"], devices, named["largest_bytes"])
        return [GridPoint({"bytes": size}, size) for size in collectives.sizes(*arguments)]

    def figures(self, workload: Workload, subject: int) -> Dict[str, PointFigure]:
        factor = collectives.factor(workload.parameters["operation"], workload.case.devices)
        algorithm, bus = (per_second(1e-9 * times * subject) for times in (1, factor))
        return {
            "time": PointFigure("us", "lower", "max", scaled(1e6)),
            "algorithm_bandwidth": PointFigure("GB/s", "higher", "min", algorithm),
            "bus_bandwidth": PointFigure("GB/s", "higher", "min", bus),
        }

    def measure(self, context: Context) -> None:
        if context.rank_context.world_size == 1:
            raise Unsupported("one device has no other to communicate with")
        super().measure(context)

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        adapter, here = context.adapter, context.rank_context
        operation, dtype = (context.workload.parameters[name] for name in ("operation", "dtype"))
        count = collectives.elements(operation, dtype, here.world_size, subject)
        arrays = [
            collectives.rank_input(rank, count, dtype, here.world_size, here.seed)
            for rank in range(here.world_size)
        ]
        expected = collectives.expected(operation, arrays, here.rank)
        measurement = f"it was timed: {operation} of {subject} bytes"
        try:
            collective = adapter.collective(operation, arrays[here.rank], dtype)
            check_once(collective, expected, f"before {measurement}")
        except NotImplementedError as error:
            reason = " ".join(str(error).split())
            raise adapter.no_collective(operation, f"{dtype}: {reason}") from error
        del arrays
        in_a_row = collectives.most_in_a_row(operation, dtype, here.world_size)
        taken = collectives.measure(context, collective, in_a_row)
        check_once(collective, expected, f"after {measurement}")
        yield taken

    def check(self, workload: Workload, ranks: Any) -> None:
        """Check that all ranks ran the same blocks."""
        blocks.check_same_counts(ranks, "operations")


def check_once(operation: CollectiveOperation, expected: Optional[Any], description: str) -> None:
    """Run the collective once. Raises Mismatch where its result is wrong."""
    operation.reset()
    operation.run()
    collectives.check_result(operation.result(), expected, description)
