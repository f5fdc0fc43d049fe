"""Sizes, rates and results of collectives, as nccl-tests defines them (doc/PERFORMANCE.md there).

A size S counts bytes: of an all-reduce, a broadcast, a reduce and a send-receive those of a rank's
array; of an all-gather, a reduce-scatter and an all-to-all those of all parts together. Algorithm
bandwidth is S / time; bus bandwidth is that times a factor, so that it can be compared with what a
link carries, whatever the number of ranks n. A GB is 10^9 bytes.
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
    Collective,
    Communication,
)
from harness.kind import Context
from harness.measuring import blocks

#: Bytes of an element.
ITEM = {"float32": 4, "float16": 2, "bfloat16": 2}
#: Whole numbers up to here are exact in it, and so are their sums.
_EXACT = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}
#: The largest number that it holds, rounded down.
_LARGEST = {"float32": 3e38, "float16": 65504.0, "bfloat16": 3e38}
#: Run again, they add up what is a sum already.
GROWING = (ALL_REDUCE, REDUCE)
#: They cut an array into a part for each rank, or put one together.
IN_PARTS = (ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL)
#: A prime, so that no part of an array begins as another does.
_PERIOD = 65521
_MOST = 100
_MOST_IN_A_BLOCK = 10000


def factor(operation: str, ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth."""
    if operation == ALL_REDUCE:
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if operation in IN_PARTS else 1.0


def sizes(operation: str, dtype: str, ranks: int, largest: int) -> List[int]:
    """Bytes of each, from 8 to ``largest``, each twice the one before; whole elements of each part,
    where there are such, and at least one."""
    unit = ITEM[dtype] * (ranks if operation in IN_PARTS else 1)
    nominal = (8 << power for power in range(max(1, (largest // 8).bit_length())))
    return sorted({max(unit, size // unit * unit) for size in nominal})


def elements(operation: str, dtype: str, ranks: int, size: int) -> int:
    """Of the array that each rank brings."""
    count = size // ITEM[dtype]
    return count // ranks if operation == ALL_GATHER else count


def highest_value(dtype: str, ranks: int) -> int:
    """Of whole numbers whose sums over the ranks are exact. Raises Unsupported where there are
    none: what cannot be checked is not measured."""
    value = min(_MOST, _EXACT[dtype] // ranks)
    if value < 1:
        raise Unsupported(f"sums over {ranks} ranks are not exact in {dtype}: no check of them")
    return value


def array_of(rank: int, count: int, dtype: str, ranks: int, seed: int) -> Any:
    """What a rank brings: random whole numbers, as float32."""
    import numpy as np

    most = highest_value(dtype, ranks)
    random = np.random.RandomState((1000 * seed + rank) % 2**32)
    numbers = random.randint(-most, most + 1, min(count, _PERIOD)).astype(np.float32)
    return np.resize(numbers, count)


def most_in_a_row(operation: str, dtype: str, ranks: int) -> Optional[int]:
    """How often it can run on what it left before the largest number could overflow; None where it
    leaves the same each time. Each all-reduce multiplies by the number of ranks."""
    if operation not in GROWING:
        return None
    room = _LARGEST[dtype] / highest_value(dtype, ranks)
    return max(1, math.floor(math.log(room) / math.log(ranks)))


def expected(operation: str, arrays: List[Any], rank: int) -> Any:
    """What ``rank`` has after one run, by what all ranks brought; None where nothing is said of it,
    as of a reduce anywhere but at its root."""
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


def timed_block(adapter: Communication, made: Collective, runs: int) -> float:
    """Seconds of so many runs, one behind the other, that all ranks begin together."""
    made.reset()
    adapter.synchronize()
    adapter.all_reduce(0.0)
    return blocks.time_together(adapter, made.run, runs)


def runs_of_block(adapter: Communication, made: Collective, most: int, seconds: float) -> int:
    """How many take so many seconds, at ``most`` as many; all ranks come to the same number."""
    ranks, count = adapter.rank_context.world_size, 1
    while True:
        taken = adapter.all_reduce(timed_block(adapter, made, count)) / ranks
        wanted = math.ceil(count * seconds / max(taken, 1e-9))
        if taken >= 0.5 * seconds or count >= most:
            return max(1, min(wanted, most))
        count = min(wanted, 10 * count, most)


def measure(context: Context, made: Collective, in_a_row: Optional[int] = None) -> Dict[str, Any]:
    """As :func:`harness.measuring.blocks.measure`, of blocks that all ranks begin together.
    ``in_a_row``: how often it can run before it is set back; None: without end."""
    adapter, parameters = context.adapter, context.workload.parameters
    most = in_a_row or _MOST_IN_A_BLOCK
    runs = runs_of_block(adapter, made, most, parameters["block_seconds"])
    taken = [timed_block(adapter, made, runs) for _ in range(parameters["blocks"])]
    late = blocks.elapsed(made.result)
    blocks.check_complete(late, taken[-1], made.result)
    return {"operations": runs, "seconds": taken}


def check_result(found: Any, wanted: Optional[Any], what: str) -> None:
    """Raises Mismatch where a result differs anywhere from what is ``wanted``; None: anything."""
    import numpy as np

    if wanted is None:
        return
    found = np.array(found).reshape(-1)  # a copy: it may be of what is still being written
    if found.shape != wanted.shape:
        raise Mismatch(f"{what} gave {found.size} elements, not {wanted.size}")
    wrong = np.flatnonzero(found != wanted)
    if wrong.size:
        raise Mismatch(
            f"{what} is wrong in {wrong.size} of {wanted.size} elements, first in number "
            f"{wrong[0]}: {found[wrong[0]]:g}, not {wanted[wrong[0]]:g}"
        )
