"""Matmuls that all ranks share, with the collective that combines the parts.

With a sharded inner dimension each rank has a product of the whole shape, and an all-reduce adds
them up. With sharded columns each rank has some columns, and an all-gather joins them. Before and
after timing, every rank checks the combined result of random operands against float64."""

from __future__ import annotations

from typing import Dict, Iterator, List

from harness.adapter import Mismatch, Unsupported
from harness.capabilities import MicroBenchmarks
from harness.kind import Context, Metric, Parameter, Workload, one_of
from harness.measuring import blocks, rounding
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.operands import (
    MOST_IN_A_BLOCK,
    check_matmul,
    matmul_operands,
    most_in_a_row,
    plain_shapes,
    shapes_of,
)
from harness.measuring.sweep import Block, GridPoint, Sweep, per_second, scaled
from harness.operations import ALL_GATHER, ALL_REDUCE, CollectiveOperation, MatmulShape

INNER, COLUMNS = "inner", "columns"
#: Collective after a matmul, by the sharded dimension.
COLLECTIVES = {INNER: ALL_REDUCE, COLUMNS: ALL_GATHER}
MATMUL, COMMUNICATION = "matmul", "communication"
PARTS = (MATMUL, COMMUNICATION, BOTH)


class ShardedMatmul(Sweep):
    """Sharded matmuls: TFLOP/s of the whole product, and milliseconds of matmul, collective and
    both, on the slowest rank."""

    needs = MicroBenchmarks
    independent_ranks = False
    parameters = (
        Parameter("shapes", plain_shapes, "", "m x k x n of each whole matmul", "1024x1024x1024"),
        Parameter(
            "sharded", one_of(*COLLECTIVES), "",
            "sharded dimension: the inner one, with an all-reduce of the sums; or columns, with an "
            "all-gather", INNER,
        ),
        *blocks.parameters("each part"),
    )  # fmt: skip
    summaries = (("highest_rate", "rate", max),)

    def grid(self, workload: Workload) -> List[GridPoint]:
        asked = shapes_of(workload.parameters["shapes"])
        return [GridPoint({"m": shape.m, "k": shape.k, "n": shape.n}, shape) for shape in asked]

    def figures(self, workload: Workload, subject: MatmulShape) -> Dict[str, Metric]:
        rates = ("TFLOP/s", "higher", "min", per_second(1e-12 * subject.operations))
        times = ("ms", "lower", "max", scaled(1e3))
        return {
            "rate": Metric(*rates, at={"part": BOTH}),
            "matmul_rate": Metric(*rates, at={"part": MATMUL}),
            **{f"{part}_time": Metric(*times, at={"part": part}) for part in PARTS},
        }

    def run(self, context: Context, subject: MatmulShape) -> Iterator[Block]:
        import numpy as np

        ranks, rank = context.rank_context.world_size, context.rank_context.rank
        sharded = context.workload.parameters["sharded"]
        operation = COLLECTIVES[sharded]
        random = blocks.random_of(context)
        left, right = matmul_operands(subject, random)
        own = share_of(subject, sharded, rank, ranks)
        parts = (left[:, own], right[own]) if sharded == INNER else (left, right[:, own])
        primitives = context.adapter.primitives_with(operation)
        matmul = primitives.sharded_matmul(*map(np.ascontiguousarray, parts), operation)
        dtype = rounding.check_ran_in(context, matmul.dtype)

        def check(when: str) -> None:
            matmul.both()
            context.adapter.synchronize()
            try:
                check_matmul(matmul.result(), left, right, dtype, random)
            except Mismatch as error:
                raise Mismatch(f"{when} it was timed, after its {operation}: {error}") from None

        check("before")
        # A matmul overwrites its result; only repeated collectives add up.
        most = {COMMUNICATION: most_in_a_row(operation, matmul.dtype, ranks)}
        seconds = {}
        for part, run in zip(PARTS, (matmul.matmul, matmul.collective, matmul.both)):
            timed = CollectiveOperation(matmul.matmul, run, matmul.result)
            taken = blocks.measure(context, timed, most.get(part, MOST_IN_A_BLOCK))
            seconds[part] = [duration / taken["operations"] for duration in taken["seconds"]]
            yield {"part": {"part": part}, **taken}
        check_longer(seconds, 1)
        check("after")


def share_of(shape: MatmulShape, sharded: str, rank: int, ranks: int) -> slice:
    """Return the slice of k, or of n, that ``rank`` has. Raises Unsupported for unequal parts."""
    name, extent = ("k", shape.k) if sharded == INNER else ("n", shape.n)
    if extent % ranks:
        raise Unsupported(f"{ranks} ranks cannot have equal parts of {shape}: {name} is {extent}")
    return slice(rank * extent // ranks, (rank + 1) * extent // ranks)
