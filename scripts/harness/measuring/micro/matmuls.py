"""Operands of a product, and whether what a framework made of them is right.

Standard library and numpy.
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from harness.adapter import Mismatch
from harness.measuring.micro.shapes import Shape

#: Entries of a result that are computed again in float64.
SAMPLE = 64
#: How far they may be from that: the norm of the difference over the norm. Rounding makes a tenth
#: of it, in float32 and where operands have a half's eight bits; see the precisions.
ROUNDING, HALF_ROUNDING = 1e-4, 3e-2


def operands(shape: Shape, random: Any) -> Sequence[Any]:
    """Two float32 arrays of random numbers around 0, small enough for the sums to fit float16."""
    import numpy as np

    batch = (shape.batch,) if shape.batch > 1 else ()
    scale = 1 / math.sqrt(shape.k)
    left = scale * random.standard_normal((*batch, shape.m, shape.k))
    right = random.standard_normal((*batch, shape.k, shape.n))
    return left.astype(np.float32), right.astype(np.float32)


def check_matmul(result: Any, first: Any, second: Any, dtype: str, random: Any) -> float:
    """How far a sample of the ``result`` is from the product in float64. Raises Mismatch where that
    is more than rounding, or where its shape is another."""
    import numpy as np

    shape = (*first.shape[:-1], second.shape[-1])
    found = np.asarray(result)
    if found.shape != shape:
        raise Mismatch(f"a product of the shape {shape} has the shape {found.shape}")
    places = [random.randint(0, extent, SAMPLE) for extent in shape]
    *batch, rows, columns = places
    left = first[(*batch, rows)].astype(np.float64)
    right = np.swapaxes(second, -1, -2)[(*batch, columns)].astype(np.float64)
    exact = (left * right).sum(-1)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = found[tuple(places)].astype(np.float64) - exact
        error = float(np.linalg.norm(difference) / np.linalg.norm(exact))
    bound = ROUNDING if dtype == "float32" else HALF_ROUNDING
    if not error <= bound:
        raise Mismatch(
            f"{SAMPLE} entries of a product of the shape {shape} are {error:.2g} off those in "
            f"float64, more than {bound:g}"
        )
    return error
