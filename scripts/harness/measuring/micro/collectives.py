"""Sizes, rates and results of collectives, as nccl-tests defines them (its doc/PERFORMANCE.md).

A size S counts bytes. For an all-reduce, a broadcast, a reduce and a send-receive it is a rank's
array; for an all-gather, a reduce-scatter and an all-to-all it is all parts together. Algorithm
bandwidth is S / time. Bus bandwidth is that times a factor that makes it comparable to the speed of
a link, for any number of ranks n. A GB is 10^9 bytes.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Optional

from harness.adapter import Mismatch, Unsupported
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    CollectiveOperation,
    Communication,
)
from harness.kind import Context
from harness.measuring import blocks

#: Bytes of an element.
ITEM = {"float32": 4, "float16": 2, "bfloat16": 2}
#: Largest whole number up to which all sums are exact, by dtype.
_EXACT = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}
#: Largest number of each dtype, rounded down.
_LARGEST = {"float32": 3e38, "float16": 65504.0, "bfloat16": 3e38}
#: Collectives whose result grows when they are repeated in place.
GROWING = (ALL_REDUCE, REDUCE)
#: Collectives that split an array into a part for each rank, or join the parts.
IN_PARTS = (ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)
#: A prime period, so that no two parts of an array start alike.
_PERIOD = 65521
_MOST = 100
_MOST_IN_A_BLOCK = 10000


def factor(operation: str, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth."""
    if operation == ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in IN_PARTS else 1.0


def sizes(operation: str, dtype: str, ranks: int, largest: int) -> List[int]:
    """Return the sizes in bytes, from 8 to ``largest``, each twice the one before.

    Sizes are whole elements of each part, at least one."""
    unit = ITEM[dtype] * (ranks if operation in IN_PARTS else 1)
    nominal = (8 << power for power in range(max(1, (largest // 8).bit_length())))
    return sorted({max(unit, size // unit * unit) for size in nominal})


def elements(operation: str, dtype: str, ranks: int, size: int) -> int:
    """Return the number of elements in the array that each rank contributes."""
    count = size // ITEM[dtype]
    return count // ranks if operation == ALL_GATHER else count


def highest_value(dtype: str, ranks: int) -> int:
    """Return the largest whole number whose sums over the ranks are exact. Raises Unsupported where
    there is none."""
    value = min(_MOST, _EXACT[dtype] // ranks)
    if value < 1:
        raise Unsupported(f"sums over {ranks} ranks are not exact in {dtype}: no check of them")
    return value


def rank_input(rank: int, count: int, dtype: str, ranks: int, seed: int) -> Any:
    """Return a rank's input, random whole numbers as float32 (count,)."""
    import numpy as np

    most = highest_value(dtype, ranks)
    random = np.random.RandomState((1000 * seed + rank) % 2**32)
    numbers = random.randint(-most, most + 1, min(count, _PERIOD)).astype(np.float32)
    return np.resize(numbers, count)


def most_in_a_row(operation: str, dtype: str, ranks: int) -> Optional[int]:
    """Return how often the collective can run on its own result before it could overflow.

    Each all-reduce multiplies by the number of ranks. None where the result stays the same."""
    if operation not in GROWING:
        return None
    room = _LARGEST[dtype] / highest_value(dtype, ranks)
    return max(1, math.floor(math.log(room) / math.log(ranks)))


def expected(operation: str, arrays: List[Any], rank: int) -> Any:
    """Return the result of ``rank`` after one run, from the ``arrays`` of all ranks; None where it
    is undefined, as of a reduce at other ranks than its root."""
    import numpy as np

    ranks = len(arrays)
    part = slice(rank * len(arrays[0]) // ranks, (rank + 1) * len(arrays[0]) // ranks)
    if operation == REDUCE and rank:
        return None
    if operation in (ALL_REDUCE, REDUCE):
        return sum(arrays)
    if operation == REDUCE_SCATTER:
        return sum(array[part] for array in arrays)
    if operation == ALL_GATHER:
        return np.concatenate(arrays)
    if operation == ALL_TO_ALL:
        return np.concatenate([array[part] for array in arrays])
    sender: Dict[str, int] = {BROADCAST: 0, SEND_RECEIVE: (rank - 1) % ranks}
    return arrays[sender[operation]]


def timed_block(adapter: Communication, collective: CollectiveOperation, runs: int) -> float:
    """Return the seconds of consecutive ``runs`` that all ranks start together."""
    collective.reset()
    adapter.synchronize()
    adapter.all_reduce(0.0)
    return blocks.time_together(adapter, collective.run, runs)


def runs_of_block(
    adapter: Communication, collective: CollectiveOperation, most: int, seconds: float
) -> int:
    """Return how many runs take ``seconds``, at most ``most``, the same in all ranks."""
    ranks, count = adapter.rank_context.world_size, 1
    while True:
        taken = adapter.all_reduce(timed_block(adapter, collective, count)) / ranks
        needed = math.ceil(count * seconds / max(taken, 1e-9))
        if taken >= 0.5 * seconds or count >= most:
            return max(1, min(needed, most))
        count = min(needed, 10 * count, most)


def measure(
    context: Context, collective: CollectiveOperation, in_a_row: Optional[int] = None
) -> Dict[str, Any]:
    """Time blocks that all ranks start together, as :func:`harness.measuring.blocks.measure`.

    ``in_a_row``: how often the collective may run before it is reset; None for no limit."""
    adapter, parameters = context.adapter, context.workload.parameters
    most = in_a_row or _MOST_IN_A_BLOCK
    runs = runs_of_block(adapter, collective, most, parameters["block_seconds"])
    collective.result()  # compiles, in some frameworks
    taken = [timed_block(adapter, collective, runs) for _ in range(parameters["blocks"])]
    late = blocks.elapsed(collective.result)
    blocks.check_complete(late, taken[-1], collective.result)
    return {"operations": runs, "seconds": taken}


def check_result(actual: Any, expected: Optional[Any], description: str) -> None:
    """Raise Mismatch where a result differs from ``expected`` in any element; None accepts
    anything."""
    import numpy as np

    if expected is None:
        return
    actual = np.array(actual).reshape(-1)  # a copy: it may be of what is still being written
    if actual.shape != expected.shape:
        raise Mismatch(f"{description} gave {actual.size} elements, not {expected.size}")
    wrong = np.flatnonzero(actual != expected)
    if wrong.size:
        raise Mismatch(
            f"{description} is wrong in {wrong.size} of {expected.size} elements, first in number "
            f"{wrong[0]}: {actual[wrong[0]]:g}, not {expected[wrong[0]]:g}"
        )
