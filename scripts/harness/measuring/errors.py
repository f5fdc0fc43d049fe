"""Relative errors of arrays."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping

#: Fraction of an array's share of its layer's norm. An exact array below it is zero but for the
#: rounding of float64.
_CANCELLED = 1e-9


def relative(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """Return the Euclidean norm of the difference, divided by the norm of ``expected`` or, if
    larger, ``floor``. Raises ValueError where the shapes differ."""
    import numpy as np

    if actual.shape != expected.shape:
        raise ValueError(f"shape {actual.shape}, not {expected.shape}")
    exact = np.asarray(expected, np.float64)
    distance = float(np.linalg.norm((np.asarray(actual, np.float64) - exact).ravel()))
    return distance / max(float(np.linalg.norm(exact.ravel())), floor, 1e-300)


def worst_token(actual: Any, expected: Any, compared: Any = True) -> Dict[str, Any]:
    """Return the largest error of a token's logits (batch, count, vocabulary), among the tokens
    where ``compared`` (batch, count) is true. It is relative to the token's norm or, if larger, a
    mean token's norm."""
    import numpy as np

    exact = np.asarray(expected, np.float64)
    norms = np.linalg.norm(exact, axis=2)
    mean = max(float(np.sqrt((norms**2).mean())), 1e-300)
    off = np.linalg.norm(np.asarray(actual, np.float64) - exact, axis=2)
    errors = np.where(compared, off / np.maximum(norms, mean), 0.0)
    # argmax returns the index of a NaN, if there is one
    row, number = np.unravel_index(np.argmax(errors), errors.shape)
    where = f"token {number} of sequence {row}"
    return measured("outputs of a token", float(errors[row, number]), where)


def measured(quantity: str, error: float, where: str = "") -> Dict[str, Any]:
    """Return an error as an entry of the record."""
    return {"quantity": quantity, "error": error, "where": where}


def worst(entries: Iterable[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the entry with the largest error; a NaN is the largest of all."""
    return max(entries, key=lambda entry: (entry["error"] != entry["error"], entry["error"]))


def compare_arrays(
    quantity: str,
    actual: Mapping[str, Any],
    expected: Mapping[str, Any],
    floor: float,
) -> List[Dict[str, Any]]:
    """Return the largest relative error of one array, and that of all together (``QUANTITY,
    total``).

    The error of an array is relative to at least ``floor`` times its share, by number of elements,
    of the norm of all arrays. In half precision, a small gradient is the difference of larger
    terms, and rounding alone is a hundredth of these terms. A gradient may be zero but for
    rounding, such as the gradient of the keys' bias, which softmax ignores. It is the sum of terms
    as large as in the layer's other arrays, so its error is relative to its share of the layer's
    norm, if that is larger. Raises KeyError where the names differ."""
    import numpy as np

    if set(actual) != set(expected):
        differing = sorted(set(actual) ^ set(expected))
        raise KeyError(f"{quantity}: only one side has the names {differing[:5]}")
    norms, sizes = {}, {}
    squares: Dict[str, float] = {}  # by layer; "" stands for all layers
    elements: Dict[str, int] = {}
    for name, array in expected.items():
        exact = np.asarray(array, np.float64)
        norms[name], sizes[name] = float(np.linalg.norm(exact.ravel())), exact.size
        for group in {"", _layer(name)}:
            squares[group] = squares.get(group, 0.0) + norms[name] ** 2
            elements[group] = elements.get(group, 0) + exact.size

    def share(group: str, name: str) -> float:
        """Return the share of a group's norm that an array has by its number of elements."""
        return float((squares[group] * sizes[name] / max(elements[group], 1)) ** 0.5)

    errors, differences = [measured(quantity, 0.0)], 0.0
    for name, array in actual.items():
        least, of_layer = floor * share("", name), share(_layer(name), name)
        if norms[name] < _CANCELLED * of_layer:
            least = max(least, of_layer)
        errors.append(measured(quantity, relative(array, expected[name], least), name))
        differences += (errors[-1]["error"] * max(norms[name], least, 1e-300)) ** 2
    total = (differences / max(squares.get("", 0.0), 1e-300)) ** 0.5
    return [worst(errors), measured(quantity + ", total", total)]


def _layer(name: str) -> str:
    """Return the name of a parameter's layer; the parameter's own name if it belongs to no
    layer."""
    return name.rpartition(".")[0] or name
