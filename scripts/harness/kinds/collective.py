"""A collective between all ranks, in sizes from 8 bytes on, each twice the one before: time,
algorithm and bus bandwidth as nccl-tests defines them.

At each size the result is checked before and after the timed blocks. All ranks start a block
together, and it ends when the last of its runs is complete. Arrays that grow with each run are
reset between blocks, so that nothing overflows. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional

from harness import communication
from harness.adapter import Case, Unsupported
from harness.communication import CollectiveOperation, Communication
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of, point
from harness.measuring import blocks
from harness.measuring.micro import collectives
from harness.processes.memory import available_bytes

#: Copies of an array that a rank holds besides the arrays of all ranks: its own, the received one,
#: the result on the host, the expected result, and as many again for a runtime that copies.
COPIES = 6


class Collective(Kind):
    """Collective alone: microseconds and GB/s at each size, on the slowest rank."""

    needs = Communication
    axes = ("framework", "nodes", "devices_per_node")
    parameters = (
        Parameter("operation", one_of(*communication.OPERATIONS), "", "which collective"),
        Parameter("dtype", one_of(*collectives.ITEM), "", "of its elements", "float32"),
        Parameter("largest_bytes", at_least(8), "bytes", "the largest size", 2**20),
        *blocks.parameters("a size", 0.02),
    )

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        sizes = _sizes(workload)
        factor = collectives.factor(workload.parameters["operation"], workload.case.devices)

        def seconds(rank: Mapping[str, Any], size: int) -> float:
            return blocks.operation_seconds(rank, {"bytes": size})

        def average(rank: Mapping[str, Any]) -> float:
            return sum(1e-9 * factor * size / seconds(rank, size) for size in sizes) / len(sizes)

        metrics = {"average_bus_bandwidth": Metric("GB/s", "higher", "min", average)}
        for size in sizes:
            for name, unit, better, combine, scale, power in (
                ("time", "us", "lower", "max", 1e6, 1),
                ("algorithm_bandwidth", "GB/s", "higher", "min", 1e-9 * size, -1),
                ("bus_bandwidth", "GB/s", "higher", "min", 1e-9 * factor * size, -1),
            ):
                metric = Metric(
                    unit, better, combine,
                    lambda rank, size=size, scale=scale, power=power: (  # type: ignore[misc]
                        scale * seconds(rank, size) ** power
                    ),
                )  # fmt: skip
                metrics.update([point(name, {"bytes": size}, metric)])
        return metrics

    def measure(self, context: Context) -> None:
        if context.rank_context.world_size == 1:
            raise Unsupported("one device has no other to communicate with")
        sizes, parameters = _sizes(context.workload), context.workload.parameters
        check_room(
            context.workload.case, parameters["operation"], parameters["dtype"], sizes[-1],
            available_bytes(),
        )  # fmt: skip
        with blocks.recorded_blocks(context) as timed:
            for size in sizes:
                context.report.enter(f"{size} bytes")
                timed.append(_measured(context, size))

    def check(self, workload: Workload, ranks: Any) -> None:
        """Check that all ranks ran the same blocks."""
        blocks.check_same_counts(ranks, "operations")


def _sizes(workload: Workload) -> List[int]:
    parameters = workload.parameters
    operation, dtype = parameters["operation"], parameters["dtype"]
    return collectives.sizes(operation, dtype, workload.case.devices, parameters["largest_bytes"])


def _measured(context: Context, size: int) -> Dict[str, Any]:
    adapter, parameters = context.adapter, context.workload.parameters
    operation, dtype, rank_context = (
        parameters["operation"],
        parameters["dtype"],
        context.rank_context,
    )
    count = collectives.elements(operation, dtype, rank_context.world_size, size)
    arrays = [
        collectives.rank_input(rank, count, dtype, rank_context.world_size, rank_context.seed)
        for rank in range(rank_context.world_size)
    ]
    expected = collectives.expected(operation, arrays, rank_context.rank)
    measurement = f"it was timed: {operation} of {size} bytes"
    try:
        collective = adapter.collective(operation, arrays[rank_context.rank], dtype)
        check_once(collective, expected, f"before {measurement}")
    except NotImplementedError as error:
        reason = " ".join(str(error).split())
        raise adapter.no_collective(operation, f"{dtype}: {reason}") from error
    del arrays
    in_a_row = collectives.most_in_a_row(operation, dtype, rank_context.world_size)
    taken = collectives.measure(context, collective, in_a_row)
    check_once(collective, expected, f"after {measurement}")
    return {"at": {"bytes": size}, **taken}


def check_room(case: Case, operation: str, dtype: str, size: int, available: Optional[int]) -> None:
    """Raise MemoryError where a node's ranks lack memory for a size of ``size`` bytes.

    Each rank holds the arrays of all ranks, for the check, and copies of its own. ``available``:
    bytes of memory, None where the kernel does not tell."""
    arrays = case.devices * 4 * collectives.elements(operation, dtype, case.devices, size)
    copies = COPIES * size * 4 // collectives.ITEM[dtype]
    needed = case.devices_per_node * (arrays + copies)
    if available is not None and needed > available:
        raise MemoryError(
            f"{operation} of {size} bytes, with the copies by which it is checked, takes "
            f"{needed / 2**30:.3g} GiB on a node; {available / 2**30:.3g} GiB are available: say a "
            "smaller largest_bytes"
        )


def check_once(operation: CollectiveOperation, expected: Optional[Any], description: str) -> None:
    """Run the collective once. Raises Mismatch where its result is wrong."""
    operation.reset()
    operation.run()
    collectives.check_result(operation.result(), expected, description)
