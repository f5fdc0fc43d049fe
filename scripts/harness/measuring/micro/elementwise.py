"""Exact results of element-wise operations, and the check of what a framework computed.

Standard library and numpy.
"""

from __future__ import annotations

from typing import Any, Callable, Dict

from harness.adapter import Mismatch
from harness.operations import ADD, EXP, MULTIPLY, SCALAR, SCALE, TRIAD

#: Largest error of an element, relative to 1 + its magnitude: rounding of operands and results to
#: the eight bits of bfloat16, and of float32 alone.
HALF_ROUNDING, ROUNDING = 2e-2, 1e-5


def exact(name: str, *arrays: Any) -> Any:
    """Return the result of the operation ``name`` of float32 ``arrays``, by numpy."""
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
