"""Check a sample of a result against float64. Standard library and numpy."""

from __future__ import annotations

from typing import Any

from harness.adapter import Mismatch

#: Elements of a result that are recomputed.
SAMPLE = 64
#: Largest relative error, by norm. In float32 a fast convolution (Winograd's) takes most of it. In
#: TF32 and in half precision, rounding of operands and of attention's probabilities is a tenth of
#: it.
ROUNDING, HALF_ROUNDING = {"float32": 1e-3, "tf32": 6e-3}, 5e-2


def check_shape(actual: Any, shape: Any, description: str) -> None:
    """Raise Mismatch where the shape differs."""
    if tuple(actual.shape) != tuple(shape):
        raise Mismatch(f"{description} has the shape {tuple(actual.shape)}, not {tuple(shape)}")


def check(actual: Any, exact: Any, dtype: str, description: str) -> float:
    """Return the relative error of ``actual`` against ``exact``. Raises Mismatch where it exceeds
    rounding."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.asarray(actual, np.float64) - exact
        error = float(np.linalg.norm(difference) / max(float(np.linalg.norm(exact)), 1e-30))
    bound = ROUNDING.get(dtype, HALF_ROUNDING)
    if not error <= bound:
        raise Mismatch(
            f"{exact.size} elements of {description} are {error:.2g} off those in float64, more "
            f"than {bound:g}"
        )
    return error
