"""Shapes of matmuls, their operands, and the check of their results.

``1024x512x256`` is (m, k, n) = (1024, 512, 256); ``8x1024x512x256`` is a batch of eight; several
are separated by blanks. Standard library and numpy.
"""

from __future__ import annotations

import math
from typing import Any, List, Sequence

from core.matmuls import MatmulShape

from harness.measuring.micro import samples

#: Largest relative error, by norm and dtype; "" is half precision. Rounding alone is a tenth of it:
#: in float32, with the 11 bits of TF32, and with the eight bits of half-precision operands.
ROUNDING = {"float64": 1e-6, "int8": 0.0, "float32": 1e-4, "tf32": 4e-3, "": 3e-2}


def shape(text: str) -> MatmulShape:
    """Return the shape that ``text`` says. Raises ValueError."""
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
    samples.check_shape(actual, shape, name)
    places = [random.randint(0, extent, samples.SAMPLE) for extent in shape]
    *batch, rows, columns = places
    left = first[(*batch, rows)].astype(np.float64)
    right = np.swapaxes(second, -1, -2)[(*batch, columns)].astype(np.float64)
    return samples.check(actual[tuple(places)], (left * right).sum(-1), dtype, name, ROUNDING)
