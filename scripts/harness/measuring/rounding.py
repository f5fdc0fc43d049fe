"""Observe to how many significant bits a framework's matmuls round float32 operands.

TF32, and library modes that multiply float32 in bfloat16 or float16, leave the dtypes of all arrays
as they are. Only results show them."""

from __future__ import annotations

from typing import Any, Dict, List

from core import precisions

from harness.adapter import Adapter, Rounding
from harness.kind import Context
from harness.measuring.checks import check_matmuls

FLOAT32, TF32 = "float32", "tf32"
#: Formats that replace float32, by their significant bits.
FORMATS = {11: TF32, 8: "bfloat16"}
#: Fewest significant bits of a float32 matmul: 24, less two that an algorithm's sums may lose.
_FLOAT32_BITS = 22
#: Rows and columns of the matrices, and channels of the images, large enough for tensor cores.
_SIZE = 256
_IMAGES = (8, 16, 16)  # images, rows, columns
#: Scale beyond float16's range: a matmul in float16 gives no finite result.
_SCALE = 2.0**20


def observe(adapter: Adapter) -> Dict[str, int]:
    """Return the significant bits that a matmul and a convolution keep.

    Returns {} where the case's precision has no float32 matmuls, or the framework does not support
    the check."""
    if not isinstance(adapter, Rounding):
        return {}
    if {FLOAT32, TF32}.isdisjoint(precisions.known()[adapter.case.precision].dtypes):
        return {}
    import numpy as np

    exponents = np.arange(_SIZE) % 23 + 1
    row = (_SCALE * (1 + 2.0**-exponents)).astype(np.float32)
    identity = np.eye(_SIZE, dtype=np.float32)
    matrix = np.tile(row, (_SIZE, 1))
    images = np.tile(row, (*_IMAGES, 1))
    # A kernel of one pixel excludes transforms (Winograd, Fourier), which round as well.
    kernel = identity[np.newaxis, np.newaxis]
    return {
        "matrix product": _bits(adapter.matmul_result(matrix, identity), row, exponents),
        "convolution": _bits(adapter.matmul_result(images, kernel), row, exponents),
    }


def named(products: Dict[str, int], bits: Dict[str, int]) -> Dict[str, int]:
    """Return the counts by dtype, with float32 replaced by the format that ``bits`` show."""
    if FLOAT32 not in products or not bits:
        return products
    names = " or ".join(dict.fromkeys(map(_format, bits.values())))
    counts = {dtype: count for dtype, count in products.items() if dtype != FLOAT32}
    counts[names] = counts.get(names, 0) + products[FLOAT32]
    return counts


def ran_in(context: Context, dtype: str) -> str:
    """Return the ``dtype`` of a matmul without a model, or the format that float32 is rounded to.

    The significant bits are observed once and stored in the record."""
    bits = context.fields.get("significant_bits") or observe(context.adapter)
    if bits:
        context.fields["significant_bits"] = bits
    (name,) = named({dtype: 1}, bits)
    return name


def check_ran_in(context: Context, dtype: str, count: int = 1) -> str:
    """Store and return the format in which ``count`` matmuls without a model ran: ``dtype``, or the
    format that float32 is rounded to. Raises Mismatch for a format that the precision lacks."""
    name = ran_in(context, dtype)
    context.fields["matmul_dtypes"] = check_matmuls(context.workload.case.precision, {name: count})
    return name


def _bits(result: Any, row: Any, exponents: Any) -> int:
    """Return the fewest significant bits that a result keeps.

    Operands are 1 + 2^-n, scaled. The bit of weight 2^-n is kept where the result is nearer to
    1 + 2^-n than to 1."""
    import numpy as np

    error = np.abs(np.asarray(result, np.float64).reshape(-1, len(row)) - row).max(0) / _SCALE
    kept = error < 2.0 ** -(exponents + 1.0)  # false for a NaN
    lost: List[int] = sorted(exponents[~kept])
    return int(lost[0]) if lost else 24


def _format(bits: int) -> str:
    """Return the name of the format with these significant bits."""
    if bits >= _FLOAT32_BITS:
        return FLOAT32
    return FORMATS.get(bits, f"float32 with {bits} significant bits")
