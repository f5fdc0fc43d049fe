"""Operands of matmuls, and checks of results against float64, in a sample or in every element.

A shape ``1024x512x256`` is (m, k, n) = (1024, 512, 256); ``8x1024x512x256`` is a batch of eight;
several are separated by blanks. Standard library and numpy.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, Mapping, Sequence

from harness.adapter import Mismatch
from harness.operations import ADD, EXP, MULTIPLY, SCALAR, SCALE, TRIAD, MatmulShape

#: Number of elements of a result that are recomputed. If one of 64 ranks' parts is wrong, the
#: sample misses it once in fifty times.
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


def check_shape(actual: Any, shape: Any, description: str) -> None:
    """Raise Mismatch where the shape differs."""
    if tuple(actual.shape) != tuple(shape):
        raise Mismatch(f"{description} has the shape {tuple(actual.shape)}, not {tuple(shape)}")


def check(
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


def exact_elements(name: str, *arrays: Any) -> Any:
    """Return the result of the elementwise operation ``name`` of float32 ``arrays``, by numpy."""
    import numpy as np

    functions: Dict[str, Callable[..., Any]] = {
        ADD: lambda a, b: a + b,
        MULTIPLY: lambda a, b: a * b,
        EXP: np.exp,
        SCALE: lambda c: SCALAR * c,
        TRIAD: lambda b, c: b + SCALAR * c,
    }
    return functions[name](*arrays)


def check_elements(name: str, result: Any, expected: Any, dtype: str) -> None:
    """Raise Mismatch where an element of ``result`` differs from ``expected`` by more than
    rounding."""
    bound = ROUNDING if dtype == "float32" else HALF_ROUNDING
    if result.shape != expected.shape:
        raise Mismatch(f"{name} of {expected.size} elements gave {result.size}")
    wrong = ~(abs(result - expected) <= bound * (1 + abs(expected)))
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


def operands(shape: MatmulShape, random: Any) -> Sequence[Any]:
    """Return two float32 arrays, (.., m, k) and (.., k, n).

    Values are random numbers around 0, small enough that sums fit float16."""
    import numpy as np

    batch = (shape.batch,) if shape.batch > 1 else ()
    left = random.standard_normal((*batch, shape.m, shape.k)) / math.sqrt(shape.k)
    right = random.standard_normal((*batch, shape.k, shape.n))
    return left.astype(np.float32), right.astype(np.float32)


def whole_numbers(array: Any) -> Any:
    """Return random whole numbers from -127 to 127 in the order of ``array``'s values."""
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
    return check(actual[tuple(places)], (left * right).sum(-1), dtype, name, MATMUL_ROUNDING)
