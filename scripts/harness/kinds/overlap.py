"""Overlap of computation and an all-reduce: the share of the shorter that the longer hides.

A training step communicates the gradients of the last layers while it computes those of earlier
layers. Here each is timed alone and both together, in turns, always synchronized before the clock
is read. By default the computations take about as long as the all-reduce, so that all of it could
be hidden.

The all-reduce and the last computation are checked before and after the timed blocks. Numpy.
"""

from __future__ import annotations

import statistics
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from harness.adapter import Unsupported
from harness.communication import ALL_REDUCE, CollectiveOperation, Overlapped, Overlapping
from harness.kind import Context, Metric, Parameter, Workload, at_least, one_of
from harness.measuring import blocks
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.micro import collectives
from harness.measuring.micro.matmuls import check_matmul, operands, shape
from harness.measuring.micro.samples import check_elements, exact_elements
from harness.measuring.sweep import Block, GridPoint, PointFigure, Sweep, scaled
from harness.measuring.verification import rounding
from harness.operations import MATMUL, MULTIPLY

COMPUTE, COMMUNICATION = "compute", "communication"
PARTS = (COMPUTE, COMMUNICATION, BOTH)
#: Limit on the number of computations that are matched to the all-reduce.
_MOST_MATMULS = 256
_DTYPE = "float32"  # of the message


def one_shape(text: str) -> str:
    """Return the canonical text of the one shape in ``text``, as the type of a parameter."""
    if shape(text).batch > 1:
        raise ValueError("must be one shape like 640x1024x1880 (m, k, n)")
    return str(shape(text))


class Overlap(Sweep):
    """Overlap: milliseconds of computation, all-reduce and both together, on the slowest rank each;
    and the share of the shorter that the longer hides."""

    needs = Overlapping
    independent_ranks = False
    names_points = False
    axes = ("framework", "nodes", "devices_per_node", "precision")
    parameters = (
        # Shape and message are those of SuperBench's computation-communication-overlap.
        Parameter("operation", one_of(MATMUL, MULTIPLY), "", "what is computed", MATMUL),
        Parameter(
            "shape", one_shape, "",
            f"{MATMUL}: m x k by k x n; {MULTIPLY}: m x k by m x k", "640x1024x1880",
        ),
        Parameter(
            "matmuls", at_least(0), "",
            "computations beside an all-reduce; 0: as many as take as long as it does", 0,
        ),
        Parameter("message_bytes", at_least(4), "bytes", "of the all-reduce", 28000000),
        *blocks.parameters("each alone and both together", fewest=2),
    )  # fmt: skip

    def grid(self, workload: Workload) -> List[GridPoint]:
        return [GridPoint({}, None)]  # its parts take turns

    def figures(self, workload: Workload, subject: None) -> Dict[str, PointFigure]:
        return {
            f"{part}_time": PointFigure("ms", "lower", "max", scaled(1e3), {"part": part})
            for part in PARTS
        }

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        times = super().metrics(workload)
        hidden = Metric(
            "%", "higher", hidden_percent,
            lambda rank: [metric.of_rank(rank) for metric in times.values()],
        )  # fmt: skip
        return {"hidden_share": hidden, **times}

    def measure(self, context: Context) -> None:
        if context.rank_context.world_size == 1:
            raise Unsupported("one device has no other to communicate with")
        super().measure(context)

    def run(self, context: Context, subject: None) -> Iterator[Block]:
        parameters = context.workload.parameters
        trial = _Trial(context)
        matmuls = parameters["matmuls"] or context.phase("matching", trial.matching_matmuls)
        trial.set_up(matmuls)
        dtype = rounding.check_ran_in(context, trial.overlapped.dtype, matmuls)
        trial.check("before it was timed", dtype)
        context.report.enter("timed window")
        runs, seconds = trial.timed(parameters["blocks"], parameters["block_seconds"])
        for part, taken in seconds.items():
            yield {
                "part": {"part": part}, "operations": runs, "matmuls": matmuls, "seconds": taken
            }  # fmt: skip
        check_longer(seconds, runs)
        trial.check("after it was timed", dtype)

    def check(self, workload: Workload, ranks: Any) -> None:
        blocks.check_same_counts(ranks, "operations", "matmuls")


class _Trial:
    """Operands and message of a rank, and the checks of their results."""

    overlapped: Overlapped

    def __init__(self, context: Context) -> None:
        import numpy as np

        self.adapter: Overlapping = context.adapter
        parameters, here = context.workload.parameters, context.rank_context
        self._ranks = here.world_size
        self._random = np.random.RandomState(here.seed)
        self._operation: str = parameters["operation"]
        self._shape = shape(parameters["shape"])
        if self._operation == MATMUL:
            self._arrays = operands(self._shape, self._random)
        else:
            extents = (2, self._shape.m, self._shape.k)
            self._arrays = list(self._random.uniform(-1, 1, extents).astype(np.float32))
        count = parameters["message_bytes"] // collectives.ITEM[_DTYPE]
        arrays = [
            collectives.rank_input(rank, count, _DTYPE, self._ranks, here.seed)
            for rank in range(self._ranks)
        ]
        self._message = arrays[here.rank]
        self._sum = collectives.expected(ALL_REDUCE, arrays, here.rank)

    def set_up(self, matmuls: int) -> None:
        """Prepare as many computations beside the all-reduce."""
        self.overlapped = self.adapter.overlapped(
            self._operation, self._arrays, matmuls, self._message
        )

    def matching_matmuls(self) -> int:
        """Return how many computations take as long as the all-reduce, the same in all ranks."""
        self.set_up(1)
        for part in PARTS:  # compiles, connects, and makes room
            self._block(part, 1)
        compute, communication = (
            self.adapter.all_reduce(statistics.median(self._block(part, 1) for _ in range(3)))
            for part in (COMPUTE, COMMUNICATION)
        )
        return max(1, min(round(communication / max(compute, 1e-9)), _MOST_MATMULS))

    def timed(self, count: int, seconds: float) -> Tuple[int, Dict[str, List[float]]]:
        """Return the runs in a block, and for each part the seconds of ``count`` blocks, timed in
        turns. Raises Mismatch where work is still under way after a block."""
        overlapped = self.overlapped
        most = collectives.most_in_a_row(ALL_REDUCE, _DTYPE, self._ranks) or 1
        runs = collectives.runs_of_block(self.adapter, self._part(BOTH), most, seconds)
        results = {COMPUTE: [overlapped.computed], COMMUNICATION: [overlapped.reduced]}
        results[BOTH] = [overlapped.reduced, overlapped.computed]
        for result in results[BOTH]:
            result()  # compiles, in some frameworks
        taken: Dict[str, List[float]] = {part: [] for part in PARTS}
        for _ in range(count):
            for part, timings in taken.items():
                timings.append(self._block(part, runs))
                for result in results[part]:
                    blocks.check_complete(blocks.elapsed(result), timings[-1], result)
        return runs, taken

    def _part(self, part: str) -> CollectiveOperation:
        all_parts = self.overlapped
        runs = (all_parts.compute, all_parts.communicate, all_parts.both)
        return CollectiveOperation(all_parts.reset, runs[PARTS.index(part)], all_parts.reduced)

    def _block(self, part: str, runs: int) -> float:
        return collectives.timed_block(self.adapter, self._part(part), runs)

    def check(self, when: str, dtype: str) -> None:
        """Raise Mismatch where a result of both together, waited for as in a block, is wrong.

        ``dtype``: format that the operands of a matmul are rounded to."""
        self._block(BOTH, 1)
        description = f"{when}: {ALL_REDUCE} beside {self._operation} {self._shape}"
        collectives.check_result(self.overlapped.reduced(), self._sum, description)
        computed = self.overlapped.computed()
        left, right = self._arrays
        if self._operation == MATMUL:
            check_matmul(computed, left, right, dtype, self._random)
        else:
            exact = exact_elements(self._operation, left, right)
            check_elements(self._operation, computed, exact, self.overlapped.dtype)


def hidden_percent(ranks: Sequence[Sequence[float]]) -> float:
    """Return the hidden share in percent, from the times of each of PARTS on each rank.

    100 where both together take as long as the longer, 0 where they take as long as one after the
    other, below 0 where they slow each other down more."""
    compute, communication, both = map(max, zip(*ranks))
    return float(100 * (compute + communication - both) / min(compute, communication))
