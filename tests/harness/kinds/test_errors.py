"""Errors against the reference: the worst array decides, and none is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness.measuring.verification.errors import compare_arrays, worst_token

EXPECTED = {"a": np.array([3.0, 4.0]), "b": np.array([6.0, 8.0])}


def test_the_worst_array_and_all_together_are_told() -> None:
    off = {"a": np.array([3.0, 4.5]), "b": np.array([6.0, 8.5])}
    worst, total = compare_arrays("gradients", off, EXPECTED, 0.0)
    assert (worst["quantity"], worst["error"], worst["where"]) == ("gradients", 0.1, "a")
    assert total["quantity"] == "gradients, total"
    assert total["error"] == pytest.approx((0.5 / 125) ** 0.5)


@pytest.mark.parametrize("broken", ["a", "b"])
def test_an_error_that_is_no_number_is_the_largest(broken: str) -> None:
    actual = {**EXPECTED, broken: np.array([math.nan, 4.0])}
    worst, total = compare_arrays("gradients", actual, EXPECTED, 0.0)
    assert worst["where"] == broken
    assert math.isnan(worst["error"])
    assert math.isnan(total["error"])


@pytest.mark.parametrize(("exact", "error"), [(1e-18, 1e-3 / 5), (1e-6, 1e-3 / 0.05)])
def test_an_array_that_cancels_is_compared_with_its_layer(exact: float, error: float) -> None:
    """An array that is small, but not zero, keeps the lower bound by all arrays."""
    weight, rest = np.full(4, 5.0), np.zeros(10**4 * 4 - 5)
    expected = {"head.weight": weight, "head.bias": np.array([exact]), "rest.weight": rest}
    actual = {**expected, "head.bias": np.array([exact + 1e-3])}
    worst, total = compare_arrays("gradients", actual, expected, 1.0)
    assert worst["where"] == "head.bias"
    assert worst["error"] == pytest.approx(error, rel=0.2)
    assert total["error"] == pytest.approx(1e-3 / 10)


def test_a_token_is_compared_with_its_own_norm_or_that_of_a_mean_token_if_larger() -> None:
    exact = np.array([[[3.0, 4.0], [0.0, 0.0]], [[30.0, 40.0], [3.0, 4.0]]])
    for index, size in {(0, 0): 25.5, (0, 1): 25.5, (1, 0): 50.0}.items():
        actual = exact.copy()
        actual[index] += [0.6, 0.8]
        worst = worst_token(actual, exact)
        assert worst["error"] == pytest.approx(1 / size, rel=1e-2)
        assert worst["where"] == f"token {index[1]} of sequence {index[0]}"
    actual[1, 1] = math.nan
    worst = worst_token(actual, exact)
    assert math.isnan(worst["error"])
    assert worst["where"] == "token 1 of sequence 1"
