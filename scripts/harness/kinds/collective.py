"""A collective between all ranks, in sizes from 8 bytes on, doubled each time: time,
algorithm and bus bandwidth as nccl-tests defines them (its doc/PERFORMANCE.md).

A size S counts bytes. For an all-reduce, a broadcast, a reduce and a send-receive S is a rank's
array; for an all-gather, a reduce-scatter and an all-to-all S is all parts together. Algorithm
bandwidth is S / time. Bus bandwidth is that times a factor that makes it comparable to the speed of
a link, for any number of ranks. A GB is 10^9 bytes.

At each size the result is checked before and after the timed blocks. All ranks start a block
together, and it ends when the last of its runs is complete."""

from __future__ import annotations

from typing import Dict, Iterator, List

from harness import operations
from harness.capabilities import MicroBenchmarks
from harness.kind import Context, Metric, Parameter, Workload, at_least, one_of
from harness.measuring import blocks, operands
from harness.measuring.sweep import Block, GridPoint, Sweep, mean, per_second, scaled
from harness.operations import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER

#: Collectives that split an array into one part per rank, or join such parts.
IN_PARTS = (ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)


class Collective(Sweep):
    """Collective alone: microseconds and GB/s at each size, on the slowest rank."""

    needs = MicroBenchmarks
    independent_ranks = False
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("operation", one_of(*operations.ALL_COLLECTIVES), "", "which collective"),
        Parameter("dtype", one_of(*operands.ITEM), "", "of its elements", "float32"),
        Parameter("largest_bytes", at_least(8), "bytes", "the largest size", 2**20),
        *blocks.parameters("a size", 0.02),
    )
    summaries = (("average_bus_bandwidth", "bus_bandwidth", mean),)

    def grid(self, workload: Workload) -> List[GridPoint]:
        named, devices = workload.parameters, workload.case.devices
        every = sizes(named["operation"], named["dtype"], devices, named["largest_bytes"])
        return [GridPoint({"bytes": size}, size) for size in every]

    def figures(self, workload: Workload, subject: int) -> Dict[str, Metric]:
        bus = factor(workload.parameters["operation"], workload.case.devices)
        rates = {"algorithm_bandwidth": 1e-9 * subject, "bus_bandwidth": 1e-9 * bus * subject}
        return {
            "time": Metric("us", "lower", "max", scaled(1e6)),
            **{
                name: Metric("GB/s", "higher", "min", per_second(amount))
                for name, amount in rates.items()
            },
        }

    def run(self, context: Context, subject: int) -> Iterator[Block]:
        adapter, here = context.adapter, context.rank_context
        operation, dtype = (context.workload.parameters[name] for name in ("operation", "dtype"))
        count = elements(operation, dtype, here.world_size, subject)
        arrays = operands.rank_inputs(count, dtype, here.world_size, here.seed)
        expected = operands.expected_result(operation, arrays, here.rank)

        def check(when: str) -> None:
            collective.reset()
            collective.run()
            description = f"{when} it was timed: {operation} of {subject} bytes"
            operands.check_result(collective.result(), expected, description)

        primitives = adapter.primitives_with(operation)
        try:
            collective = primitives.collective(operation, arrays[here.rank], dtype)
            check("before")
        except NotImplementedError as error:
            reason = " ".join(str(error).split())
            raise adapter.no_collective(operation, f"{dtype}: {reason}") from error
        del arrays
        most = operands.most_in_a_row(operation, dtype, here.world_size)
        taken = blocks.measure(context, collective, most)
        check("after")
        yield taken


def factor(operation: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth."""
    if operation == ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in IN_PARTS else 1.0


def sizes(operation: str, dtype: str, ranks: int, largest: int) -> List[int]:
    """Return the sizes in bytes, from 8 to ``largest``, doubled each time.

    Sizes are whole elements of each part, at least one."""
    unit = operands.ITEM[dtype] * (ranks if operation in IN_PARTS else 1)
    nominal = (8 << power for power in range(max(1, (largest // 8).bit_length())))
    return sorted({max(unit, size // unit * unit) for size in nominal})


def elements(operation: str, dtype: str, ranks: int, size: int) -> int:
    """Return the number of elements in the array that each rank contributes."""
    count = size // operands.ITEM[dtype]
    return count // ranks if operation == ALL_GATHER else count
