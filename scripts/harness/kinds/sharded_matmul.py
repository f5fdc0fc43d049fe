"""Matmuls that all ranks share, with the collective that combines the parts.

With a sharded inner dimension each rank has a product of the whole shape, and an all-reduce adds
them up. With sharded columns each rank has some columns, and an all-gather joins them. Matmul,
collective and both are timed separately. Before and after timing, every rank checks the combined
result against float64, in elements of each rank's columns. Operands are random. Standard library
and numpy.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping

from core.matmuls import MatmulShape

from harness.adapter import Mismatch, Unsupported
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    CollectiveOperation,
    MatmulCollective,
    ShardedMatmuls,
)
from harness.kind import Context, Kind, Metric, Parameter, Workload, one_of, point
from harness.measuring import blocks
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.checks import check_matmuls
from harness.measuring.micro import collectives
from harness.measuring.micro.matmuls import check_matmul, operands
from harness.measuring.micro.shapes import plain_shapes, shapes_of
from harness.measuring.verification import rounding

INNER, COLUMNS = "inner", "columns"
#: Collective after a matmul, by the sharded dimension.
COLLECTIVES = {INNER: ALL_REDUCE, COLUMNS: ALL_GATHER}
MATMUL, COMMUNICATION = "matmul", "communication"
PARTS = (MATMUL, COMMUNICATION, BOTH)


class ShardedMatmul(Kind):
    """Sharded matmuls: TFLOP/s of the whole product, and milliseconds of matmul, collective and
    both, on the slowest rank."""

    needs = ShardedMatmuls
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter("shapes", plain_shapes, "", "m x k x n of each whole product", "1024x1024x1024"),
        Parameter(
            "sharded", one_of(*COLLECTIVES), "",
            "what is cut: the inner dimension, and an all-reduce adds up; or columns, which an "
            "all-gather puts side by side", INNER,
        ),
        *blocks.parameters("each part"),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        shapes = shapes_of(workload.parameters["shapes"])

        def highest(rank: Mapping[str, Any]) -> float:
            return max(rate(rank, shape, BOTH) for shape in shapes)

        named = {"highest_rate": Metric("TFLOP/s", "higher", "min", highest)}
        for shape in shapes:
            for name, part in (("rate", BOTH), ("matmul_rate", MATMUL)):
                metric = Metric("TFLOP/s", "higher", "min", _value_of(rate, shape, part))
                named.update([point(name, _at(shape), metric)])
            for part in PARTS:
                metric = Metric("ms", "lower", "max", _value_of(milliseconds, shape, part))
                named.update([point(f"{part}_time", _at(shape), metric)])
        return named

    def measure(self, context: Context) -> None:
        if context.rank_context.world_size == 1:
            raise Unsupported("one device has no other to share a matmul with")
        parameters = context.workload.parameters
        shapes = shapes_of(parameters["shapes"])
        for shape in shapes:
            share_of(shape, parameters["sharded"], 0, context.rank_context.world_size)
        with blocks.recorded_blocks(context) as timed:
            for shape in shapes:
                context.report.enter(f"matmul {shape}")
                timed.extend(_measured(context, shape))

    def check(self, workload: Workload, ranks: Any) -> None:
        """Check that all ranks ran the same number of operations."""
        blocks.check_same_counts(ranks, "operations")


def share_of(shape: MatmulShape, sharded: str, rank: int, ranks: int) -> slice:
    """Return the slice of k, or of the columns n, that ``rank`` has. Raises Unsupported where the
    parts are not equal."""
    name, extent = ("k", shape.k) if sharded == INNER else ("n", shape.n)
    if extent % ranks:
        raise Unsupported(f"{ranks} ranks cannot have equal parts of {name} of {shape}: {extent}")
    size = extent // ranks
    return slice(rank * size, (rank + 1) * size)


def check_whole(
    result: Any, left: Any, right: Any, sharded: str, ranks: int, dtype: str, random: Any
) -> None:
    """Raise Mismatch where the result is not the matmul of the whole matrices.

    Samples are taken of the whole result and of the columns of each rank."""
    check_matmul(result, left, right, dtype, random)
    if sharded == COLUMNS:
        shape = MatmulShape(1, len(left), len(right), right.shape[1])
        for rank in range(ranks):
            share = share_of(shape, sharded, rank, ranks)
            check_matmul(result[:, share], left, right[:, share], dtype, random)


def _measured(context: Context, shape: MatmulShape) -> Iterator[Dict[str, Any]]:
    import numpy as np

    adapter, parameters, rank_context = (
        context.adapter,
        context.workload.parameters,
        context.rank_context,
    )
    sharded, ranks = parameters["sharded"], rank_context.world_size
    random = np.random.RandomState(rank_context.seed)
    left, right = operands(shape, random)
    share = share_of(shape, sharded, rank_context.rank, ranks)
    parts = (left[:, share], right[share]) if sharded == INNER else (left, right[:, share])
    operation = COLLECTIVES[sharded]
    arrays = [np.ascontiguousarray(array) for array in parts]
    sharded_matmul: MatmulCollective = adapter.sharded_matmul(*arrays, operation)
    dtype = rounding.ran_in(context, sharded_matmul.dtype)
    context.fields["matmul_dtypes"] = check_matmuls(context.workload.case.precision, {dtype: 1})

    def check(when: str) -> None:
        sharded_matmul.both()
        adapter.synchronize()
        try:
            check_whole(sharded_matmul.result(), left, right, sharded, ranks, dtype, random)
        except Mismatch as error:
            raise Mismatch(f"{when} it was timed, behind its {operation}: {error}") from None

    check("before")
    runs = {
        MATMUL: sharded_matmul.matmul,
        COMMUNICATION: sharded_matmul.collective,
        BOTH: sharded_matmul.both,
    }
    seconds = {}
    for part, run in runs.items():
        # A matmul overwrites its result; only repeated collectives add up.
        grows = part == COMMUNICATION
        in_a_row = (
            collectives.most_in_a_row(operation, sharded_matmul.dtype, ranks) if grows else None
        )
        timed = CollectiveOperation(sharded_matmul.matmul, run, sharded_matmul.result)
        taken = collectives.measure(context, timed, in_a_row)
        seconds[part] = [duration / taken["operations"] for duration in taken["seconds"]]
        yield {"at": {**_at(shape), "part": part}, **taken}
    check_longer(seconds, 1)
    check("after")


def _at(shape: MatmulShape) -> Dict[str, int]:
    """Return the point of a run that the shape is."""
    return {"m": shape.m, "k": shape.k, "n": shape.n}


Figure = Callable[[Mapping[str, Any], MatmulShape, str], float]


def _value_of(
    figure: Figure, shape: MatmulShape, part: str
) -> Callable[[Mapping[str, Any]], float]:
    return lambda rank: figure(rank, shape, part)


def milliseconds(rank: Mapping[str, Any], shape: MatmulShape, part: str) -> float:
    """Return the milliseconds of the median block. Raises KeyError where there is none."""
    return 1e3 * blocks.operation_seconds(rank, {**_at(shape), "part": part})


def rate(rank: Mapping[str, Any], shape: MatmulShape, part: str) -> float:
    """Return the TFLOP/s of the whole matmul, computed by all ranks together in the time of
    ``part``."""
    return 1e-9 * shape.operations / milliseconds(rank, shape, part)
