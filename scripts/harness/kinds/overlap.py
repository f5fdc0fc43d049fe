"""Overlap of computation and an all-reduce: the share of the shorter that the longer hides.

A training step communicates the gradients of the last layers while it computes those of earlier
layers. Here each is timed alone and both together, in turns, always synchronized before the clock
is read. By default the computations take about as long as the all-reduce, so that all of it could
be hidden.

The all-reduce and the last computation are checked before and after the timed blocks. Standard
library and numpy.
"""

from __future__ import annotations

import statistics
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from core.matmuls import MatmulShape

from harness.adapter import Unsupported
from harness.communication import ALL_REDUCE, CollectiveOperation
from harness.kind import Context, Kind, Metric, Parameter, Workload, at_least, one_of
from harness.measuring import blocks
from harness.measuring.blocks import BOTH, check_longer
from harness.measuring.checks import check_matmuls
from harness.measuring.micro import collectives
from harness.measuring.micro.elementwise import check_elements, exact
from harness.measuring.micro.matmuls import check_matmul, operands
from harness.measuring.micro.shapes import shape
from harness.measuring.verification import rounding
from harness.operations import MATMUL, MULTIPLY
from harness.overlapping import Overlapped, Overlapping

COMPUTE, COMMUNICATION = "compute", "communication"
PARTS = (COMPUTE, COMMUNICATION, BOTH)
#: Limit on the number of computations that are matched to the all-reduce.
_MOST_MATMULS = 256
_DTYPE = "float32"  # of the message


def one_shape(text: str) -> str:
    """Return the canonical text of the single shape "m x k x n" in ``text``. Raises ValueError for
    an invalid or batched one."""
    parsed = shape(text)
    if parsed.batch > 1:
        raise ValueError("must be one shape like 640x1024x1880 (m, k, n)")
    return str(parsed)


class Overlap(Kind):
    """Overlap: milliseconds of computation, all-reduce and both together, on the slowest rank each;
    and the share of the shorter that the longer hides."""

    needs = Overlapping
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

    def metrics(self, workload: Workload) -> Dict[str, Metric]:
        def milliseconds(part: str) -> Callable[[Mapping[str, Any]], float]:
            return lambda rank: 1e3 * blocks.operation_seconds(rank, {"part": part})

        return {
            "hidden_share": Metric("%", "higher", hidden_percent, seconds_of_parts),
            **{f"{part}_time": Metric("ms", "lower", "max", milliseconds(part)) for part in PARTS},
        }

    def measure(self, context: Context) -> None:
        if context.rank_context.world_size == 1:
            raise Unsupported("one device has no other to communicate with")
        fields, parameters = context.fields, context.workload.parameters
        trial = _Trial(context)
        with blocks.recorded_blocks(context) as points:
            matmuls = parameters["matmuls"] or context.phase("matching", trial.matching_matmuls)
            trial.set_up(matmuls)
            dtype = rounding.ran_in(context, trial.overlapped.dtype)
            dtypes = {dtype: matmuls}
            fields["matmul_dtypes"] = check_matmuls(context.workload.case.precision, dtypes)
            trial.check("before it was timed", dtype)
            context.report.enter("timed window")
            runs, seconds = trial.timed(parameters["blocks"], parameters["block_seconds"])
            points.extend(
                {"at": {"part": part}, "operations": runs, "matmuls": matmuls, "seconds": taken}
                for part, taken in seconds.items()
            )
            check_longer(seconds, runs)
            trial.check("after it was timed", dtype)

    def check(self, workload: Workload, ranks: Any) -> None:
        """Raise Mismatch where ranks timed different numbers of computations."""
        blocks.check_same_counts(ranks, "operations", "matmuls")


class _Trial:
    """Operands and message of a rank, and the checks of their results."""

    overlapped: Overlapped

    def __init__(self, context: Context) -> None:
        import numpy as np

        self.adapter: Overlapping = context.adapter
        parameters = context.workload.parameters
        rank_context = context.rank_context
        self._random = np.random.RandomState(rank_context.seed)
        self._operation: str = parameters["operation"]
        self._shape: MatmulShape = shape(parameters["shape"])
        self._arrays = operands_of(self._operation, self._shape, self._random)
        self._ranks = rank_context.world_size
        count = parameters["message_bytes"] // collectives.ITEM[_DTYPE]
        arrays = [
            collectives.rank_input(rank, count, _DTYPE, self._ranks, rank_context.seed)
            for rank in range(self._ranks)
        ]
        self._message = arrays[rank_context.rank]
        self._sum = collectives.expected(ALL_REDUCE, arrays, rank_context.rank)

    def set_up(self, matmuls: int) -> None:
        self.overlapped = self.adapter.overlapped(
            self._operation, self._arrays, matmuls, self._message
        )

    def matching_matmuls(self) -> int:
        """Return how many computations take as long as the all-reduce, the same in all ranks."""
        self.set_up(1)
        for part in PARTS:  # compiles, connects, and makes room
            self._block(part, 1)
        seconds = {
            part: statistics.median(self._block(part, 1) for _ in range(3))
            for part in (COMPUTE, COMMUNICATION)
        }
        summed = {part: self.adapter.all_reduce(value) for part, value in seconds.items()}
        matching = round(summed[COMMUNICATION] / max(summed[COMPUTE], 1e-9))
        return max(1, min(matching, _MOST_MATMULS))

    def timed(self, count: int, seconds: float) -> Any:
        """Return the runs in a block, and for each part the seconds of ``count`` blocks, timed in
        turns. Raises Mismatch where work is still under way after a block."""
        overlapped = self.overlapped
        most = collectives.most_in_a_row(ALL_REDUCE, _DTYPE, self._ranks) or 1
        both = CollectiveOperation(overlapped.reset, overlapped.both, overlapped.reduced)
        runs = collectives.runs_of_block(self.adapter, both, most, seconds)
        taken: Dict[str, List[float]] = {part: [] for part in PARTS}
        results = {COMPUTE: [overlapped.computed], COMMUNICATION: [overlapped.reduced]}
        results[BOTH] = [overlapped.reduced, overlapped.computed]
        for result in results[BOTH]:
            result()  # compiles, in some frameworks
        for _ in range(count):
            for part, timings in taken.items():
                timings.append(self._block(part, runs))
                for result in results[part]:
                    late = blocks.elapsed(result)
                    blocks.check_complete(late, timings[-1], result)
        return runs, taken

    def _block(self, part: str, runs: int) -> float:
        overlapped = self.overlapped
        run = {
            COMPUTE: overlapped.compute,
            COMMUNICATION: overlapped.communicate,
            BOTH: overlapped.both,
        }[part]
        return collectives.timed_block(
            self.adapter, CollectiveOperation(overlapped.reset, run, overlapped.reduced), runs
        )

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
            expected = exact(self._operation, left, right)
            check_elements(self._operation, computed, expected, self.overlapped.dtype)


def operands_of(operation: str, shape: MatmulShape, random: Any) -> Sequence[Any]:
    """Return two random float32 arrays: (m, k) and (k, n) for MATMUL, both (m, k) for MULTIPLY."""
    import numpy as np

    if operation == MATMUL:
        return operands(shape, random)
    return list(random.uniform(-1, 1, (2, shape.m, shape.k)).astype(np.float32))


def seconds_of_parts(rank: Mapping[str, Any]) -> Tuple[float, ...]:
    """Return a rank's seconds of each of PARTS."""
    return tuple(blocks.operation_seconds(rank, {"part": part}) for part in PARTS)


def hidden_percent(ranks: Sequence[Tuple[float, ...]]) -> float:
    """Return the hidden share in percent of the slowest rank's seconds of each of PARTS.

    100 where both together take as long as the longer, 0 where they take as long as one after the
    other, below 0 where they slow each other down more."""
    compute, communication, both = (
        max(seconds[part] for seconds in ranks) for part in range(len(PARTS))
    )
    return 100 * (compute + communication - both) / min(compute, communication)
