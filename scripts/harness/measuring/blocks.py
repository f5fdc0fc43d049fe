"""Time blocks of a repeated operation.

A single operation is shorter than reading a clock and waiting for a device. A block starts and ends
with an idle device.
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from harness.adapter import Adapter, Mismatch
from harness.kind import Context, Parameter, above_zero, at_least
from harness.measuring import window
from harness.measuring.checks import check_cores
from harness.operations import CollectiveOperation, Operation

#: Number of blocks at a point, and the least duration of each.
BLOCKS, BLOCK_SECONDS = 5, 0.1
MOST_IN_A_BLOCK = 1000000
#: Largest share of a block that may be left after synchronization.
LATE_PART = 0.5
#: Name of the blocks in which two kinds of work run together.
BOTH = "both"
#: If two kinds of work take this fraction less time together than one of them alone, they were not
#: waited for. The seconds allow for waking an idle process in each run.
_SHORTER, _WAKING = 0.1, 5e-5


def parameters(operation: str, seconds: float = BLOCK_SECONDS, fewest: int = 1) -> List[Parameter]:
    """Return the parameters of a kind that times ``operation`` in blocks of ``seconds`` each."""
    return [
        Parameter("blocks", at_least(fewest), "", f"how often {operation} is timed", BLOCKS),
        Parameter("block_seconds", above_zero, "s", "about how long a block takes", seconds),
    ]


@contextlib.contextmanager
def recorded_blocks(context: Context) -> Iterator[List[Dict[str, Any]]]:
    """Yield the list of blocks of a rank, which is part of its report from the start.

    Afterwards the report has the time of the blocks and the cores. Raises Mismatch where the rank
    runs on cores other than its own."""
    fields = context.fields
    timed: List[Dict[str, Any]] = []
    fields["blocks"] = timed
    start = time.perf_counter()
    yield timed
    fields["window_start"], fields["window_seconds"] = start, time.perf_counter() - start
    fields["cores"] = check_cores(context.cores)


def time_together(adapter: Adapter, run: Callable[[], Any], count: int) -> float:
    """Return the seconds of ``count`` runs, one after the other."""
    adapter.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    adapter.synchronize()
    return time.perf_counter() - start


def runs_of_block(timed: Callable[[int], float], seconds: float, most: int = 0) -> int:
    """Return how many runs take ``seconds``, at most ``most``. ``timed``: returns the seconds of a
    number of runs. The number grows step by step, because a large part of a single run may be
    waiting."""
    count, most = 1, most or MOST_IN_A_BLOCK
    while True:
        taken = timed(count)
        needed = min(max(1, math.ceil(count * seconds / max(taken, 1e-9))), most)
        if taken >= 0.5 * seconds or count >= most:
            return needed
        count = min(needed, 10 * count)


def random_of(context: Context) -> Any:
    """Return a generator of random operands, the same in all ranks."""
    import numpy as np

    return np.random.RandomState(context.rank_context.seed)


def timer(
    context: Context, operation: Union[Operation, CollectiveOperation]
) -> Callable[[int], float]:
    """Return a function that times a number of runs in a row. A collective is reset before, and
    all ranks start together."""
    adapter = context.adapter

    def timed(count: int) -> float:
        if isinstance(operation, CollectiveOperation):
            operation.reset()
            adapter.synchronize()
            adapter.all_reduce(0.0)
        return time_together(adapter, operation.run, count)

    return timed


def agreed_runs(context: Context, timed: Callable[[int], float], most: int = 0) -> int:
    """Return how many runs make a block, at most ``most``, the same in all ranks that work
    together."""
    adapter, seconds = context.adapter, context.workload.parameters["block_seconds"]
    ranks = adapter.rank_context.world_size
    return runs_of_block(lambda count: adapter.all_reduce(timed(count)) / ranks, seconds, most)


def measure(
    context: Context,
    operation: Union[Operation, CollectiveOperation],
    most: int = 0,
    goes_on: Optional[Callable[[int], bool]] = None,
) -> Dict[str, Any]:
    """Time an operation and return ``{"operations": per block, "seconds": of each block}``.

    The workload's parameters give length and number of the blocks. ``most``: largest number of runs
    in a block. ``goes_on``: called with the number of blocks so far, returns whether another block
    follows. All ranks of this node begin together. Raises Mismatch where work was still running at
    the end of the last block."""
    parameters, timed = context.workload.parameters, timer(context, operation)
    goes_on = goes_on or (lambda done: done < parameters["blocks"])
    timed(1)  # the first call compiles and allocates the result
    count = agreed_runs(context, timed, most)
    operation.result()  # the first call compiles, in some frameworks
    taken: List[float] = []
    with window.all_ready(context.adapter, context.barrier):
        while goes_on(len(taken)):
            taken.append(timed(count))
        late = elapsed(operation.result)
    window.check_complete(late, taken[-1], operation.result, part=LATE_PART)
    return {"operations": count, "seconds": taken}


def check_longer(seconds: Mapping[str, Sequence[float]], runs: int) -> None:
    """Raise Mismatch where both operations together took less time than either alone, beyond noise.

    ``runs`` is the number of operations per block. Taking longer together is legitimate, because
    both compete for cores and memory."""
    longest = max(seconds[BOTH])
    for part, taken in seconds.items():
        shortest = min(taken)
        if part != BOTH and longest < (1 - _SHORTER) * shortest - _WAKING * runs:
            raise Mismatch(
                f"both together took {longest:.3g} s at most, and {part} alone {shortest:.3g} s at "
                "least: the combined work was not waited for"
            )


def block_at(rank: Mapping[str, Any], at: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the block of a rank at a point. Raises KeyError where the rank has none."""
    for block in rank["blocks"]:
        if block["at"] == at:
            return dict(block)
    raise KeyError(f"no blocks at {dict(at)}")


def median_seconds(block: Mapping[str, Any]) -> float:
    """Return the seconds of one operation in the median block."""
    return float(statistics.median(block["seconds"]) / block["operations"])


def elapsed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
