"""Check results against float64, in a sample or in every element. Standard library and numpy."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping

from harness.adapter import Mismatch
from harness.operations import ADD, EXP, MULTIPLY, SCALAR, SCALE, TRIAD

#: Elements of a result that are recomputed. Of a result in parts of 64 ranks, a wrong part is
#: missed once in fifty times.
SAMPLE = 256
#: Largest relative error of a layer by norm, by dtype; "" is half precision. In float32 a fast
#: convolution (Winograd's) takes most of it. In TF32 and in half precision, rounding of operands
#: and of attention's probabilities is a tenth of it.
LAYER_ROUNDING = {"float32": 1e-3, "tf32": 6e-3, "": 5e-2}
#: Largest error of an element of an elementwise operation, relative to 1 + its magnitude: rounding
#: of operands and results to the eight bits of bfloat16, and of float32 alone.
HALF_ROUNDING, ROUNDING = 2e-2, 1e-5


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
            f"{exact.size} elements of {description} are {error:.2g} off those in float64, more "
            f"than {bound:g}"
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
