"""Overlap of computation and an all-reduce: the share of the shorter one that the longer one hides.

A training step communicates the gradients of the last layers while it computes those of earlier
layers. Here each is timed alone and both together, in turns, always synchronized before the clock
is read. By default the computations take about as long as the all-reduce, so that all of it could
be hidden.

The all-reduce and the last computation are checked before and after the timed blocks."""

from __future__ import annotations

import statistics
from typing import Dict, Iterator, List, Sequence

from harness.capabilities import MicroBenchmarks
from harness.kind import Context, Metric, Parameter, Workload, at_least, one_of
from harness.measuring import blocks, operands, rounding
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.sweep import Block, GridPoint, Sweep, scaled
from harness.measuring.window import check_complete
from harness.operations import ALL_REDUCE, MATMUL, MULTIPLY, CollectiveOperation, Overlapped

COMPUTE, COMMUNICATION = "compute", "communication"
PARTS = (COMPUTE, COMMUNICATION, BOTH)
#: Limit on the number of computations that are matched to the all-reduce.
_MOST_MATMULS = 256
_DTYPE = "float32"  # dtype of the message


def one_shape(text: str) -> str:
    """Return the canonical text of the one shape in ``text``, as the type of a parameter."""
    if operands.shape(text).batch > 1:
        raise ValueError("must be one shape like 640x1024x1880 (m, k, n)")
    return str(operands.shape(text))


class Overlap(Sweep):
    """Overlap: milliseconds of computation, all-reduce and both together, each on the slowest rank;
    and the share of the shorter one that the longer one hides."""

    needs = MicroBenchmarks
    independent_ranks = False
    names_points = False
    parameters = (
        # Shape and message size are from SuperBench's computation-communication-overlap.
        Parameter("operation", one_of(MATMUL, MULTIPLY), "", "what is computed", MATMUL),
        Parameter(
            "shape", one_shape, "",
            f"{MATMUL}: m x k by k x n; {MULTIPLY}: m x k by m x k", "640x1024x1880",
        ),
        Parameter(
            "matmuls", at_least(0), "",
            "computations next to an all-reduce; 0: a number that takes about as long as the "
            "all-reduce", 0,
        ),
        Parameter("message_bytes", at_least(4), "bytes", "bytes of the all-reduce", 28000000),
        *blocks.parameters("each part alone and both together", fewest=2),
    )  # fmt: skip

    def grid(self, workload: Workload) -> List[GridPoint]:
        return [GridPoint({}, None)]  # the point times computation, all-reduce and both in turn

    def figures(self, workload: Workload, subject: None) -> Dict[str, Metric]:
        return {
            f"{part}_time": Metric("ms", "lower", "max", scaled(1e3), at={"part": part})
            for part in PARTS
        }

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        times = super().metrics(workload)
        hidden = Metric(
            "%", "higher", hidden_percent,
            lambda rank: [metric.rank_value(rank) for metric in times.values()],
        )  # fmt: skip
        return {"hidden_share": hidden, **times}

    def run(self, context: Context, subject: None) -> Iterator[Block]:
        import numpy as np

        adapter, here, asked = context.adapter, context.rank_context, context.workload.parameters
        operation, extents = asked["operation"], operands.shape(asked["shape"])
        random = blocks.random_of(context)
        if operation == MATMUL:
            arrays = operands.matmul_operands(extents, random)
        else:
            arrays = list(random.uniform(-1, 1, (2, extents.m, extents.k)).astype(np.float32))
        count = asked["message_bytes"] // operands.ITEM[_DTYPE]
        messages = operands.rank_inputs(count, _DTYPE, here.world_size, here.seed)
        total = operands.expected_result(ALL_REDUCE, messages, here.rank)

        def prepare(matmuls: int) -> Overlapped:
            message, primitives = messages[here.rank], adapter.primitives()
            made: Overlapped = primitives.overlapped(operation, arrays, matmuls, message)
            return made

        matmuls = asked["matmuls"] or context.phase(
            "matching", lambda: matching_matmuls(context, parts_of(prepare(1)))
        )
        overlapped = prepare(matmuls)
        parts = parts_of(overlapped)
        dtype = rounding.check_ran_in(context, overlapped.dtype, matmuls)

        def check(when: str) -> None:
            """Run computation and all-reduce together, as in a block, and check their results."""
            blocks.timer(context, parts[BOTH])(1)
            description = f"{when} it was timed: {ALL_REDUCE} next to {operation} {extents}"
            operands.check_result(overlapped.reduced(), total, description)
            computed = overlapped.computed()
            if operation == MATMUL:
                operands.check_matmul(computed, arrays[0], arrays[1], dtype, random)
            else:
                operands.check_elements(operation, arrays, computed, overlapped.dtype)

        check("before")
        context.report.enter("timed window")
        most = operands.most_in_a_row(ALL_REDUCE, _DTYPE, here.world_size)
        timers = {part: blocks.timer(context, parts[part]) for part in PARTS}
        runs = blocks.agreed_runs(context, timers[BOTH], most)
        overlapped.reduced(), overlapped.computed()  # the first call compiles, in some frameworks
        seconds: Dict[str, List[float]] = {part: [] for part in PARTS}
        for _ in range(asked["blocks"]):
            for part, taken in seconds.items():
                taken.append(timers[part](runs))
                for result in (overlapped.computed, overlapped.reduced):
                    late = blocks.elapsed(result)
                    check_complete(late, taken[-1], result, part=blocks.LATE_PART)
        for part, taken in seconds.items():
            yield {
                "part": {"part": part}, "operations": runs, "matmuls": matmuls, "seconds": taken
            }  # fmt: skip
        check_longer(seconds, runs)
        check("after")


def parts_of(overlapped: Overlapped) -> Dict[str, CollectiveOperation]:
    runs = (overlapped.compute, overlapped.communicate, overlapped.both)
    return {
        part: CollectiveOperation(overlapped.reset, run, overlapped.reduced)
        for part, run in zip(PARTS, runs)
    }


def matching_matmuls(context: Context, parts: Dict[str, CollectiveOperation]) -> int:
    """Return how many computations take as long as the all-reduce, the same in all ranks.
    ``parts``: timed functions of one computation."""
    timers = {part: blocks.timer(context, parts[part]) for part in PARTS}
    for timed in timers.values():  # the first call compiles, connects, and allocates
        timed(1)
    compute, communication = (
        float(context.adapter.all_reduce(statistics.median(timers[part](1) for _ in range(3))))
        for part in (COMPUTE, COMMUNICATION)
    )
    return max(1, min(round(communication / max(compute, 1e-9)), _MOST_MATMULS))


def hidden_percent(ranks: Sequence[Sequence[float]]) -> float:
    """Return the hidden share in percent, from the times of each of PARTS on each rank.

    100 where both together take as long as the longer one, 0 where they take as long as one after
    the other, below 0 where they slow each other down more."""
    compute, communication, both = map(max, zip(*ranks))
    return float(100 * (compute + communication - both) / min(compute, communication))
