"""Inputs and results of collectives.

Inputs are whole numbers whose sums over all ranks are exact. Standard library and numpy.
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
)

#: Bytes of an element, largest whole number up to which all sums are exact, and largest number,
#: rounded down, by dtype.
ITEM = {"float32": 4, "float16": 2, "bfloat16": 2}
_EXACT = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}
_LARGEST = {"float32": 3e38, "float16": 65504.0, "bfloat16": 3e38}
#: A prime period, so that all parts of an array start with different values.
_PERIOD = 65521
_MOST = 100
MOST_IN_A_BLOCK = 10000


def highest_value(dtype: str, ranks: int) -> int:
    """Return the largest whole number whose sums over the ranks are exact. Raises Unsupported where
    there is none."""
    value = min(_MOST, _EXACT[dtype] // ranks)
    if value < 1:
        raise Unsupported(
            f"sums over {ranks} ranks are not exact in {dtype}: their check is impossible"
        )
    return value


def rank_input(rank: int, count: int, dtype: str, ranks: int, seed: int) -> Any:
    """Return a rank's input, random whole numbers as float32 (count,)."""
    import numpy as np

    most = highest_value(dtype, ranks)
    random = np.random.RandomState((1000 * seed + rank) % 2**32)
    numbers = random.randint(-most, most + 1, min(count, _PERIOD)).astype(np.float32)
    return np.resize(numbers, count)


def expected(operation: str, arrays: List[Any], rank: int) -> Any:
    """Return the result of ``rank`` after one run, from the ``arrays`` of all ranks; None where it
    is undefined, such as after a reduce at ranks other than its root."""
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


def most_in_a_row(operation: str, dtype: str, ranks: int) -> int:
    """Return how often a block may run the collective on its own result.

    Each all-reduce of its result multiplies it by the number of ranks, until it would overflow."""
    if operation not in (ALL_REDUCE, REDUCE):
        return MOST_IN_A_BLOCK
    room = _LARGEST[dtype] / highest_value(dtype, ranks)
    return max(1, math.floor(math.log(room) / math.log(ranks)))


def check_result(actual: Any, expected: Optional[Any], description: str) -> None:
    """Raise Mismatch where a result differs from ``expected`` in any element; None accepts
    anything."""
    import numpy as np

    if expected is None:
        return
    # a copy, because the framework may still write to the array
    actual = np.array(actual).reshape(-1)
    if actual.shape != expected.shape:
        raise Mismatch(f"{description} gave {actual.size} elements, not {expected.size}")
    wrong = np.flatnonzero(actual != expected)
    if wrong.size:
        raise Mismatch(
            f"{description} is wrong in {wrong.size} of {expected.size} elements, first in number "
            f"{wrong[0]}: {actual[wrong[0]]:g}, not {expected[wrong[0]]:g}"
        )
