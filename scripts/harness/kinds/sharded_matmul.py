"""Products of matrices that all ranks share, and the exchange that makes the whole of them.

Where the inner dimension is cut, each rank has a product of the whole shape, and an all-reduce adds
them up; where the columns are, each has some columns, and an all-gather puts them side by side.
Product, exchange and both are timed apart. On every rank what comes of both is held against the
product of the whole matrices in float64, before anything is timed and behind it, in entries of each
rank's columns. Operands are random. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Mapping

from harness.adapter import Mismatch, Unsupported
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    Collective,
    MatmulCollective,
    ShardedMatmuls,
)
from harness.kind import Context, Kind, Metric, Parameter, Workload, one_of, point
from harness.measuring import blocks
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.checks import check_matmuls
from harness.measuring.micro import collectives
from harness.measuring.micro.matmuls import check_matmul, operands
from harness.measuring.micro.shapes import Shape, plain_shapes, shapes_of

INNER, COLUMNS = "inner", "columns"
#: What follows a product, by what is cut.
EXCHANGES = {INNER: ALL_REDUCE, COLUMNS: ALL_GATHER}
PRODUCT, EXCHANGE = "product", "exchange"
PARTS = (PRODUCT, EXCHANGE, BOTH)


class ShardedMatmul(Kind):
    """TFLOP/s of whole products, milliseconds of product, exchange and both. The slowest rank's
    count."""

    needs = ShardedMatmuls
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        Parameter("shapes", plain_shapes, "", "m x k x n of each whole product", "1024x1024x1024"),
        Parameter(
            "sharded", one_of(*EXCHANGES), "",
            "what is cut: the inner dimension, and an all-reduce adds up; or columns, which an "
            "all-gather puts side by side", INNER,
        ),
        *blocks.parameters("each part"),
    )  # fmt: skip

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        asked = shapes_of(workload.parameters["shapes"])

        def highest(rank: Mapping[str, Any]) -> float:
            return max(rate(rank, shape, BOTH) for shape in asked)

        found = {"highest_rate": Metric("TFLOP/s", "higher", "min", highest)}
        for shape in asked:
            for name, part in (("rate", BOTH), ("product_rate", PRODUCT)):
                metric = Metric("TFLOP/s", "higher", "min", _of(rate, shape, part))
                found.update([point(name, _at(shape), metric)])
            for part in PARTS:
                metric = Metric("ms", "lower", "max", _of(milliseconds, shape, part))
                found.update([point(f"{part}_time", _at(shape), metric)])
        return found

    def measure(self, context: Context) -> None:
        if context.rank_context.world_size == 1:
            raise Unsupported("one device has nobody to share a product with")
        parameters = context.workload.parameters
        asked = shapes_of(parameters["shapes"])
        for shape in asked:
            share_of(shape, parameters["sharded"], 0, context.rank_context.world_size)
        with blocks.recorded_blocks(context) as found:
            for shape in asked:
                context.report.enter(f"product {shape}")
                found.extend(_measured(context, shape))

    def check(self, workload: Workload, ranks: Any) -> None:
        """All ranks did as much."""
        blocks.check_same_counts(ranks, "operations")


def share_of(shape: Shape, sharded: str, rank: int, ranks: int) -> slice:
    """What ``rank`` has of k or of the columns, n. Raises Unsupported where the ranks cannot
    have equal parts."""
    name, extent = ("k", shape.k) if sharded == INNER else ("n", shape.n)
    if extent % ranks:
        raise Unsupported(f"{ranks} ranks cannot have equal parts of {name} of {shape}: {extent}")
    size = extent // ranks
    return slice(rank * size, (rank + 1) * size)


def check_whole(
    found: Any, left: Any, right: Any, sharded: str, ranks: int, dtype: str, random: Any
) -> None:
    """Raises Mismatch where what is ``found`` is not the product of the whole matrices, in a sample
    of all of it, and in one of the columns that each rank brings."""
    check_matmul(found, left, right, dtype, random)
    if sharded == COLUMNS:
        shape = Shape(1, len(left), len(right), right.shape[1])
        for rank in range(ranks):
            own = share_of(shape, sharded, rank, ranks)
            check_matmul(found[:, own], left, right[:, own], dtype, random)


def _measured(context: Context, shape: Shape) -> Iterator[Dict[str, Any]]:
    import numpy as np

    adapter, parameters, rank_context = (
        context.adapter,
        context.workload.parameters,
        context.rank_context,
    )
    sharded, ranks = parameters["sharded"], rank_context.world_size
    random = np.random.RandomState(rank_context.seed)
    left, right = operands(shape, random)
    own = share_of(shape, sharded, rank_context.rank, ranks)
    given = (left[:, own], right[own]) if sharded == INNER else (left, right[:, own])
    operation = EXCHANGES[sharded]
    arrays = [np.ascontiguousarray(array) for array in given]
    made: MatmulCollective = adapter.sharded_matmul(*arrays, operation)
    dtypes = {made.dtype: 1}
    context.fields["products"] = check_matmuls(context.workload.case.precision, dtypes)

    def check(when: str) -> None:
        made.both()
        adapter.synchronize()
        try:
            check_whole(made.result(), left, right, sharded, ranks, made.dtype, random)
        except Mismatch as error:
            raise Mismatch(f"{when} it was timed, behind its {operation}: {error}") from None

    check("before")
    runs = {PRODUCT: made.matmul, EXCHANGE: made.collective, BOTH: made.both}
    seconds = {}
    for part, run in runs.items():
        # A product writes over what it left; only exchanges one behind the other add up.
        grows = part == EXCHANGE
        in_a_row = collectives.most_in_a_row(operation, made.dtype, ranks) if grows else None
        timed = Collective(made.matmul, run, made.result)
        taken = collectives.measure(context, timed, in_a_row)
        seconds[part] = [one / taken["operations"] for one in taken["seconds"]]
        yield {"at": {**_at(shape), "part": part}, **taken}
    check_longer(seconds, 1)
    check("after")


def _at(shape: Shape) -> Dict[str, int]:
    """The point of a run that it is."""
    return {"m": shape.m, "k": shape.k, "n": shape.n}


Figure = Callable[[Mapping[str, Any], Shape, str], float]


def _of(figure: Figure, shape: Shape, part: str) -> Callable[[Mapping[str, Any]], float]:
    return lambda rank: figure(rank, shape, part)


def milliseconds(rank: Mapping[str, Any], shape: Shape, part: str) -> float:
    """Of the median block. Raises KeyError where there is none."""
    return 1e3 * blocks.operation_seconds(rank, {**_at(shape), "part": part})


def rate(rank: Mapping[str, Any], shape: Shape, part: str) -> float:
    """TFLOP/s of the whole product, which all ranks together compute in the time of ``part``."""
    return 1e-9 * shape.operations / milliseconds(rank, shape, part)
