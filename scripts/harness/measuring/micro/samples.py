"""A result against float64, in a sample of its elements. Standard library and numpy."""

from __future__ import annotations

from typing import Any

from harness.adapter import Mismatch

#: Elements of a result that are computed again.
SAMPLE = 64
#: How far they may be from that: the norm of the difference over the norm. In float32 a fast
#: algorithm for convolutions (Winograd's) takes most of it; where operands have a half's eight
#: bits, their rounding and that of the probabilities of attention make a tenth.
ROUNDING, HALF_ROUNDING = 1e-3, 5e-2


def check_shape(found: Any, shape: Any, what: str) -> None:
    """Raises Mismatch."""
    if tuple(found.shape) != tuple(shape):
        raise Mismatch(f"{what} has the shape {tuple(found.shape)}, not {tuple(shape)}")


def check(found: Any, exact: Any, dtype: str, what: str) -> float:
    """How far ``found`` is from ``exact``. Raises Mismatch where that is more than rounding."""
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.asarray(found, np.float64) - exact
        error = float(np.linalg.norm(difference) / max(float(np.linalg.norm(exact)), 1e-30))
    bound = ROUNDING if dtype == "float32" else HALF_ROUNDING
    if not error <= bound:
        raise Mismatch(
            f"{exact.size} elements of {what} are {error:.2g} off those in float64, more than "
            f"{bound:g}"
        )
    return error
