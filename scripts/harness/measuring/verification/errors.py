"""Relative errors of arrays. Standard library and numpy."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping


def relative(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """Euclidean norm of the difference over that of ``expected``, or ``floor`` if that is more.
    Raises ValueError where the shapes differ."""
    import numpy as np

    if actual.shape != expected.shape:
        raise ValueError(f"shape {actual.shape}, not {expected.shape}")
    exact = np.asarray(expected, np.float64)
    distance = float(np.linalg.norm((np.asarray(actual, np.float64) - exact).ravel()))
    return distance / max(float(np.linalg.norm(exact.ravel())), floor, 1e-300)


def measured(quantity: str, error: float, where: str = "") -> Dict[str, Any]:
    """As the record has it."""
    return {"quantity": quantity, "error": error, "where": where}


def counted(quantity: str, count: int, expected: int) -> Dict[str, Any]:
    """The same of a number that must be exact."""
    return measured(quantity, abs(count - expected) / expected, str(count))


def compare_arrays(
    quantity: str, actual: Mapping[str, Any], expected: Mapping[str, Any], floor: float
) -> List[Dict[str, Any]]:
    """The largest relative error of one array, and that of all together (``QUANTITY, total``).
    An array is measured against at least the part ``floor`` of its share, by number of elements, of
    the norm of all: a gradient that is zero but for rounding (that of the keys' bias: softmax does
    not see it) has no relative error. In a half precision, rounding alone is a hundredth of the
    larger terms that a small gradient is the difference of.
    Raises KeyError where the names differ."""
    import numpy as np

    if set(actual) != set(expected):
        differing = sorted(set(actual) ^ set(expected))
        raise KeyError(f"{quantity}: of the shared names differ {differing[:5]}")
    squares = sizes = differences = 0.0
    norms = {}
    for name in actual:
        exact = np.asarray(expected[name], np.float64)
        norms[name] = float(np.linalg.norm(exact.ravel()))
        squares += norms[name] ** 2
        sizes += exact.size
    worst, where = 0.0, ""
    for name, array in actual.items():
        share = floor * (squares * array.size / sizes) ** 0.5
        error = relative(array, expected[name], share)
        differences += (error * max(norms[name], share)) ** 2
        if not error <= worst:  # a NaN is the worst of all
            worst, where = error, name
    total = (differences / max(squares, 1e-300)) ** 0.5
    return [measured(quantity, worst, where), measured(quantity + ", total", total)]
