"""Operands of micro-benchmarks and checks of their results: against float64 for matmuls and layers,
exactly for collectives.

A shape ``1024x512x256`` is (m, k, n) = (1024, 512, 256); ``8x1024x512x256`` is a batch of eight;
several are separated by blanks. Inputs of collectives are whole numbers whose sums over all ranks
are exact."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Mapping, Optional, Sequence

from harness.adapter import Mismatch, Unsupported
from harness.operations import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    MatmulShape,
    functions,
)

#: Number of elements of a result that are recomputed. If the part of one rank in 64 is wrong, the
#: sample misses it in one of fifty cases.
SAMPLE = 256
#: Largest relative error of a layer, by norm, for each dtype; "" is half precision. In float32 a
#: fast convolution (Winograd's) causes most of this error. In TF32 and in half precision, rounding
#: of operands and of attention's probabilities causes a tenth of it.
LAYER_ROUNDING = {"float32": 1e-3, "tf32": 6e-3, "": 5e-2}
#: Largest error of an element of an elementwise operation, relative to 1 + its magnitude. It allows
#: for rounding of operands and results to the eight bits of bfloat16, or of float32 alone.
HALF_ROUNDING, ROUNDING = 2e-2, 1e-5
#: Largest relative error of a matmul, by norm, for each dtype; "" is half precision. Rounding of
#: float32, of TF32's 11 bits and of half precision's eight bits causes a tenth of it.
MATMUL_ROUNDING = {"float64": 1e-6, "int8": 0.0, "float32": 1e-4, "tf32": 4e-3, "": 3e-2}
#: Bytes of an element, largest whole number up to which all sums are exact, and largest number,
#: rounded down, by dtype.
ITEM = {"float32": 4, "float16": 2, "bfloat16": 2}
_EXACT = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}
_LARGEST = {"float32": 3e38, "float16": 65504.0, "bfloat16": 3e38}
#: A prime period, so that all parts of an array start with different values.
_PERIOD = 65521
_MOST = 100
#: Most runs of a collective in a block.
MOST_IN_A_BLOCK = 10000


def check_shape(actual: Any, shape: Any, description: str) -> None:
    if tuple(actual.shape) != tuple(shape):
        raise Mismatch(f"{description} has the shape {tuple(actual.shape)}, not {tuple(shape)}")


def check_error(
    actual: Any,
    exact: Any,
    dtype: str,
    description: str,
    bounds: Mapping[str, float] = LAYER_ROUNDING,
) -> float:
    """Return the relative error of ``actual`` against ``exact``. Raises Mismatch where it exceeds
    rounding: the ``bounds`` by dtype."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.asarray(actual, np.float64) - exact
        error = float(np.linalg.norm(difference) / max(float(np.linalg.norm(exact)), 1e-30))
    bound = bounds.get(dtype, bounds[""])
    if not error <= bound:
        raise Mismatch(
            f"{exact.size} elements of {description} have a relative error of {error:.2g} against "
            f"float64, more than {bound:g}"
        )
    return error


def check_elements(name: str, arrays: Sequence[Any], result: Any, dtype: str) -> None:
    """Raise Mismatch where an element of ``result``, of the elementwise operation ``name``
    of float32 ``arrays``, differs from numpy's by more than rounding."""
    import numpy as np

    expected = functions(np.matmul, np.add, np.multiply, np.exp)[name](*arrays)
    actual, bound = np.asarray(result), ROUNDING if dtype == "float32" else HALF_ROUNDING
    if actual.shape != expected.shape:
        raise Mismatch(f"{name} of {expected.size} elements gave {actual.size}")
    wrong = ~(abs(actual - expected) <= bound * (1 + abs(expected)))
    if wrong.any():
        raise Mismatch(
            f"{int(wrong.sum())} of {expected.size} results of {name} in {dtype} are wrong"
        )


def shape(text: str) -> MatmulShape:
    """Parse a shape from ``text``. Raises ValueError."""
    try:
        extents = [int(word) for word in text.split("x")]
    except ValueError:
        extents = []
    if len(extents) not in (3, 4) or min(extents) < 1:
        raise ValueError(
            "must be shapes like 1024x512x256 (m, k, n) or 8x1024x512x256 (batch, m, k, n), with "
            "blanks between several"
        )
    return MatmulShape(*extents) if len(extents) == 4 else MatmulShape(1, *extents)


def shapes_of(text: str) -> List[MatmulShape]:
    """Return the distinct shapes in ``text``, in order. Raises ValueError for an invalid one, or
    for none."""
    return [shape(word) for word in dict.fromkeys(text.split())] or [shape("")]


def shapes(text: str) -> str:
    """Return the canonical text of shapes, as the type of a parameter."""
    return " ".join(dict.fromkeys(map(str, shapes_of(text))))


def plain_shapes(text: str) -> str:
    """Return the canonical text of shapes without a batch, as the type of a parameter."""
    if any(shape.batch > 1 for shape in shapes_of(text)):
        raise ValueError("must be shapes like 640x1024x1880 (m, k, n), without a batch")
    return shapes(text)


def matmul_operands(shape: MatmulShape, random: Any) -> Sequence[Any]:
    """Return two float32 arrays, (.., m, k) and (.., k, n).

    Values are random numbers around 0, small enough that sums fit float16."""
    import numpy as np

    batch = (shape.batch,) if shape.batch > 1 else ()
    left = random.standard_normal((*batch, shape.m, shape.k)) / math.sqrt(shape.k)
    right = random.standard_normal((*batch, shape.k, shape.n))
    return left.astype(np.float32), right.astype(np.float32)


def whole_numbers(array: Any) -> Any:
    """Return ``array`` scaled and rounded to whole numbers from -127 to 127."""
    import numpy as np

    return np.rint(array * (127 / np.abs(array).max()))


def check_matmul(result: Any, first: Any, second: Any, dtype: str, random: Any) -> float:
    """Return the error of a sample of ``result`` against float64. Raises Mismatch where it exceeds
    rounding, or where the shape differs."""
    import numpy as np

    shape = (*first.shape[:-1], second.shape[-1])
    name = f"a matmul of the shape {shape}"
    actual = np.asarray(result)
    check_shape(actual, shape, name)
    places = [random.randint(0, extent, SAMPLE) for extent in shape]
    *batch, rows, columns = places
    left = first[(*batch, rows)].astype(np.float64)
    right = np.swapaxes(second, -1, -2)[(*batch, columns)].astype(np.float64)
    return check_error(actual[tuple(places)], (left * right).sum(-1), dtype, name, MATMUL_ROUNDING)


def highest_value(dtype: str, ranks: int) -> int:
    """Return the largest whole number whose sums over the ranks are exact. Raises Unsupported where
    there is none."""
    value = min(_MOST, _EXACT[dtype] // ranks)
    if value < 1:
        raise Unsupported(
            f"sums over {ranks} ranks are not exact in {dtype}: their check is impossible"
        )
    return value


def rank_inputs(count: int, dtype: str, ranks: int, seed: int) -> List[Any]:
    """Return the inputs of all ranks, random whole numbers as float32 (count,)."""
    import numpy as np

    most, inputs = highest_value(dtype, ranks), []
    for rank in range(ranks):
        random = np.random.RandomState((1000 * seed + rank) % 2**32)
        numbers = random.randint(-most, most + 1, min(count, _PERIOD)).astype(np.float32)
        inputs.append(np.resize(numbers, count))
    return inputs


def expected_result(operation: str, arrays: List[Any], rank: int) -> Any:
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
            f"{description} is wrong in {wrong.size} of {expected.size} elements, first at index "
            f"{wrong[0]}: {actual[wrong[0]]:g}, not {expected[wrong[0]]:g}"
        )
