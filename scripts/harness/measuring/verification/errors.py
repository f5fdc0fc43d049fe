"""Relative errors of arrays. Standard library and numpy."""

from __future__ import annotations

import math
import types
from typing import Any, Dict, Iterable, List, Mapping, Tuple


def relative(actual: Any, expected: Any, floor: float = 0.0) -> float:
    """Return the Euclidean norm of the difference over that of ``expected``, or ``floor`` if
    larger. Raises ValueError where the shapes differ."""
    import numpy as np

    if actual.shape != expected.shape:
        raise ValueError(f"shape {actual.shape}, not {expected.shape}")
    exact = np.asarray(expected, np.float64)
    distance = float(np.linalg.norm((np.asarray(actual, np.float64) - exact).ravel()))
    return distance / max(float(np.linalg.norm(exact.ravel())), floor, 1e-300)


#: Name of the error of the logits of a single token.
OF_TOKEN = "outputs of a token"


def errors_of_tokens(off: Any, exact: Any) -> Any:
    """Return the errors of the logits of each token, (batch, count), relative to their norm or to
    that of a mean token, if larger. ``off``: differences from the ``exact`` ones, (batch, count,
    vocabulary)."""
    import numpy as np

    norms = np.linalg.norm(exact, axis=2)
    mean = max(float(np.sqrt((norms**2).mean())), 1e-300)
    return np.linalg.norm(off, axis=2) / np.maximum(norms, mean)


def worst_token(actual: Any, expected: Any) -> Tuple[float, str]:
    """Return the largest error of the logits of a token, (batch, count, vocabulary), and its
    place."""
    import numpy as np

    exact = np.asarray(expected, np.float64)
    errors = errors_of_tokens(np.asarray(actual, np.float64) - exact, exact)
    row, number = np.unravel_index(np.argmax(errors), errors.shape)
    return float(errors[row, number]), f"token {number} of sequence {row}"


#: Smallest relative error of a standard deviation, or of a mean as part of it, that counts as one
#: standard error: generators of random numbers are not more exact.
_FINEST = 1e-4
#: Fewest values whose kurtosis is compared: of fewer, a single value far out decides.
_MANY = 256


def standard_errors(array: Any, mean: float, deviation: float, kurtosis: float) -> float:
    """Return how many standard errors the mean, the standard deviation or the kurtosis of an array,
    or the deviation of one of its rows or of their sum, is off that of the distribution it is drawn
    from; infinity where ``deviation`` is 0 and a value is not ``mean``.

    The standard errors are those of a normal distribution, larger than those of a uniform one."""
    import numpy as np

    values = np.asarray(array, np.float64)
    if not deviation:
        return 0.0 if np.allclose(values, mean, rtol=1e-6, atol=0.0) else float("inf")
    normalized = (values - mean) / deviation
    squares = normalized**2
    off = abs(float(values.mean()) - mean) / deviation
    scaled = abs(math.sqrt(float(squares.mean())) - 1.0)
    of_mean = max(1.0 / math.sqrt(values.size), _FINEST)
    of_deviation = max(1.0 / math.sqrt(2 * values.size), _FINEST)
    errors = [off / of_mean, scaled / of_deviation, _of_rows(normalized)]
    if values.size >= _MANY:
        # the variance of the fourth power of a standard normal value is 96
        errors.append(abs(float((squares**2).mean()) - kurtosis) / math.sqrt(96 / values.size))
    return max(errors)


#: Fewest squares whose mean is compared.
_ROW = 16


def _of_rows(values: Any) -> float:
    """Return how many standard errors a row of standard normal values is off, less what the largest
    of so many is off by chance. Rows lie along every axis.

    Of each row, the mean square counts; of all, that of their sum, which grows if rows are
    repeated."""
    import numpy as np

    errors = [0.0]
    for axis, count in enumerate(values.shape):
        rows = np.moveaxis(values, axis, 0).reshape(count, -1)
        if rows.shape[1] >= _ROW:
            for sums in (rows, rows.sum(0, keepdims=True) / math.sqrt(count)):
                off = _off_one((sums**2).mean(1), rows.shape[1])
                errors.append(math.sqrt(max(off**2 - 2 * math.log(len(sums)), 0.0)))
    return max(errors)


def _off_one(means: Any, count: int) -> float:
    """Return how many standard errors means of ``count`` squares of standard normal values are off
    1 at most. Their cube root is almost normal (Wilson and Hilferty 1931)."""
    import numpy as np

    variance = 2 / (9 * count)
    return float(abs(np.cbrt(means) - (1 - variance)).max()) / math.sqrt(variance)


#: Values of each array in which it is compared with other arrays.
_BEGINNING = 4096


def repeated(arrays: Mapping[str, Any]) -> Tuple[float, str]:
    """Return the largest correlation between the beginnings of two arrays of one shape, in standard
    errors, and their names.

    Arrays that are drawn with one seed are the same."""
    import numpy as np

    names_by_shape: Dict[Any, List[str]] = {}
    for name, array in arrays.items():
        names_by_shape.setdefault(array.shape, []).append(name)
    found = [(0.0, "")]
    for names in names_by_shape.values():
        values = np.stack([arrays[name].ravel()[:_BEGINNING] for name in names]).astype(np.float64)
        values -= values.mean(1, keepdims=True)
        values /= np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-300)
        correlations = np.triu(np.abs(values @ values.T), 1) * math.sqrt(values.shape[1])
        row, column = np.unravel_index(np.argmax(correlations), correlations.shape)
        found.append((float(correlations[row, column]), f"{names[row]}, {names[column]}"))
    return max(found)


def largest(errors: Iterable[Tuple[float, str]]) -> Tuple[float, str]:
    """Return the largest of ``errors``, each with its place; a NaN is the largest of all."""
    return max(errors, key=lambda pair: (pair[0] != pair[0], pair))


def measured(quantity: str, error: float, where: str = "", rounding: float = 0.0) -> Dict[str, Any]:
    """Return an error as an entry of the record. ``rounding``: as much as rounding explains."""
    explained = {"rounding": min(rounding, error)} if rounding else {}
    return {"quantity": quantity, "error": error, "where": where, **explained}


def worst(entries: Iterable[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the entry with the largest error beyond rounding; a NaN is the largest of all."""

    def beyond(entry: Dict[str, Any]) -> Tuple[bool, float]:
        error = entry["error"] - entry.get("rounding", 0.0)
        return error != error, error

    return max(entries, key=beyond)


def counted(quantity: str, count: int, expected: int) -> Dict[str, Any]:
    """Return the relative error of a number that must be exact, as an entry of the record."""
    return measured(quantity, abs(count - expected) / expected, str(count))


class _Group:
    """Arrays together: the sum of their squares, and the number of their elements."""

    def __init__(self) -> None:
        self.squares, self.elements = 0.0, 0

    def share(self, elements: int) -> float:
        """Return the share of the norm that so many elements have."""
        return float((self.squares * elements / max(self.elements, 1)) ** 0.5)


#: Part of its share of its layer's norm below which an exact array is zero but for the rounding of
#: float64.
_CANCELLED = 1e-9


def compare_arrays(
    quantity: str,
    actual: Mapping[str, Any],
    expected: Mapping[str, Any],
    floor: float,
    explained: Mapping[str, float] = types.MappingProxyType({}),
) -> List[Dict[str, Any]]:
    """Return the largest relative error of one array, and that of all together (``QUANTITY,
    total``). ``explained``: norms of the differences that rounding explains, by array.

    The error of an array is relative to at least ``floor`` times its share, by number of elements,
    of the norm of all arrays. In half precision, rounding alone is a hundredth of the larger terms
    whose difference a small gradient is. A gradient that is zero but for rounding, such as that of
    the keys' bias, which softmax ignores, has no error relative to itself: it is the sum of terms
    as large as those of its layer's other arrays, and its error is relative to its share of the
    layer's norm, if that is larger. Raises KeyError where the names differ."""
    import numpy as np

    if set(actual) != set(expected):
        differing = sorted(set(actual) ^ set(expected))
        raise KeyError(f"{quantity}: of the shared names differ {differing[:5]}")
    differences = 0.0
    norms: Dict[str, float] = {}
    groups: Dict[str, _Group] = {"": _Group()}
    for name in actual:
        exact = np.asarray(expected[name], np.float64)
        norms[name] = float(np.linalg.norm(exact.ravel()))
        for group in (groups[""], groups.setdefault(_layer(name), _Group())):
            group.squares += norms[name] ** 2
            group.elements += exact.size
    squares = groups[""].squares
    errors = [measured(quantity, 0.0)]
    for name, array in actual.items():
        share = floor * groups[""].share(array.size)
        of_layer = groups[_layer(name)].share(array.size)
        if norms[name] < _CANCELLED * of_layer:
            share = max(share, of_layer)
        error = relative(array, expected[name], share)
        size = max(norms[name], share, 1e-300)
        differences += (error * size) ** 2
        errors.append(measured(quantity, error, name, explained.get(name, 0.0) / size))
    norm = max(squares, 1e-300) ** 0.5
    rounding = math.sqrt(sum(value**2 for value in explained.values())) / norm
    total = measured(quantity + ", total", differences**0.5 / norm, rounding=rounding)
    return [worst(errors), total]


def _layer(name: str) -> str:
    """Return the name of a parameter's layer; the parameter's own if it is of none."""
    return name.rpartition(".")[0] or name
