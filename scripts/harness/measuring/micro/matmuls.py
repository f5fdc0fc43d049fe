"""Operands of a matmul, and the check of a framework's result.

Standard library and numpy.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from core.matmuls import MatmulShape

from harness.adapter import Mismatch

#: Elements of a result that are recomputed in float64.
SAMPLE = 64
#: Largest relative error, by norm. Rounding alone is a tenth of it: in float32, with the 11 bits of
#: TF32, and with the eight bits of half-precision operands; see the precisions.
ROUNDING, HALF_ROUNDING = {"float32": 1e-4, "tf32": 4e-3}, 3e-2


def operands(shape: MatmulShape, random: Any) -> Sequence[Any]:
    """Return two float32 arrays, (.., m, k) and (.., k, n).

    Values are random numbers around 0, small enough that sums fit float16."""
    import numpy as np

    batch = (shape.batch,) if shape.batch > 1 else ()
    scale = 1 / math.sqrt(shape.k)
    left = scale * random.standard_normal((*batch, shape.m, shape.k))
    right = random.standard_normal((*batch, shape.k, shape.n))
    return left.astype(np.float32), right.astype(np.float32)


def check_matmul(result: Any, first: Any, second: Any, dtype: str, random: Any) -> float:
    """Return the error of a sample of ``result`` against float64. Raises Mismatch where it exceeds
    rounding, or where the shape differs."""
    import numpy as np

    shape = (*first.shape[:-1], second.shape[-1])
    actual = np.asarray(result)
    if actual.shape != shape:
        raise Mismatch(f"a matmul of the shape {shape} has the shape {actual.shape}")
    places = [random.randint(0, extent, SAMPLE) for extent in shape]
    *batch, rows, columns = places
    left = first[(*batch, rows)].astype(np.float64)
    right = np.swapaxes(second, -1, -2)[(*batch, columns)].astype(np.float64)
    exact = (left * right).sum(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = actual[tuple(places)].astype(np.float64) - exact
        error = float(np.linalg.norm(difference) / np.linalg.norm(exact))
    bound = ROUNDING.get(dtype, HALF_ROUNDING)
    if not error <= bound:
        raise Mismatch(
            f"{SAMPLE} elements of a matmul of the shape {shape} are {error:.2g} off those in "
            f"float64, more than {bound:g}"
        )
    return error
