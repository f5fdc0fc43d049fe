"""To how many significant bits a framework's products round their float32 operands, observed.

TF32, and the modes of libraries that multiply float32 in bfloat16 or float16, leave the dtypes of
all arrays as they are: only results show them. Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Dict, List

from harness import precisions
from harness.adapter import Adapter, Rounding

FLOAT32, TF32 = "float32", "tf32"
#: What is multiplied instead of it, by its significant bits.
FORMATS = {11: TF32, 8: "bfloat16"}
#: Of the 24 of float32, one or two may be lost in the sums of an algorithm.
_FLOAT32_BITS = 22
#: Rows and columns of the matrices, channels of the images: so many that tensor cores take them.
_SIZE = 256
_IMAGES = (8, 16, 16)  # images, rows, columns
#: Too large for float16: what multiplies that instead gives no finite number.
_SCALE = 2.0**20


def observe(adapter: Adapter) -> Dict[str, int]:
    """The significant bits that a product of two matrices and a convolution keep; {} where the
    case's precision has no products of float32, or the framework does not show them."""
    if not isinstance(adapter, Rounding):
        return {}
    if {FLOAT32, TF32}.isdisjoint(precisions.load(adapter.case.precision).dtypes):
        return {}
    import numpy as np

    exponents = np.arange(_SIZE) % 23 + 1
    row = (_SCALE * (1 + 2.0**-exponents)).astype(np.float32)
    one = np.eye(_SIZE, dtype=np.float32)
    matrix = np.tile(row, (_SIZE, 1))
    images = np.tile(row, (*_IMAGES, 1))
    # A kernel of one pixel: no transform (Winograd, Fourier) is worth while, which would round too.
    kernel = one[np.newaxis, np.newaxis]
    return {
        "matrix product": _bits(adapter.matmul_result(matrix, one), row, exponents),
        "convolution": _bits(adapter.matmul_result(images, kernel), row, exponents),
    }


def named(products: Dict[str, int], bits: Dict[str, int]) -> Dict[str, int]:
    """``products`` by dtype, those of float32 by what is multiplied in truth, as far as ``bits``
    say it."""
    if FLOAT32 not in products or not bits:
        return products
    names = " or ".join(dict.fromkeys(map(_format, bits.values())))
    found = {dtype: count for dtype, count in products.items() if dtype != FLOAT32}
    found[names] = found.get(names, 0) + products[FLOAT32]
    return found


def _bits(result: Any, row: Any, exponents: Any) -> int:
    """A number keeps its bit of weight 2^-n where the result is nearer to it than to the one
    without. The least over all numbers that have that bit as their last."""
    import numpy as np

    error = np.abs(np.asarray(result, np.float64).reshape(-1, len(row)) - row).max(0) / _SCALE
    kept = error < 2.0 ** -(exponents + 1.0)  # false of a NaN
    lost: List[int] = sorted(exponents[~kept])
    return int(lost[0]) if lost else 24


def _format(bits: int) -> str:
    if bits >= _FLOAT32_BITS:
        return FLOAT32
    return FORMATS.get(bits, f"float32 with {bits} significant bits")
