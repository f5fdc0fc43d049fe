"""Errors against the reference: the worst array decides, and none is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.adapter import Case
from harness.kinds import verification
from harness.measuring.errors import compare_arrays, worst_token

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


LOSSES = [3.0871234, 2.9012345, 2.7123456, 2.5234567, 2.3345678, 2.1456789]


def in_half_precision(found: Sequence[float]) -> float:
    """Return whether these losses are said to be computed in half precision."""
    losses = iter(found)
    adapter: Any = SimpleNamespace(
        case=Case("pytorch", "toy", "train", 1, 1, 5, "amp", "none"),
        rank_context=SimpleNamespace(rank=0),
        statistics=dict,
        step=lambda: next(losses),
        read=float,
        weights=lambda: {"weight": np.ones(2)},
    )
    reference: Any = SimpleNamespace(
        expected={"losses": {"1": [[loss] for loss in LOSSES]}},
        arrays=lambda name: {"weight": np.ones(2)},
    )
    comparison = verification.Comparison(adapter, reference)
    quantities = {entry["quantity"]: entry for entry in comparison.training()}
    return float(quantities["losses in half precision"]["error"])


def bfloat16(value: float) -> float:
    bits = np.array([value], np.float32).view(np.uint32) & 0xFFFF0000
    return float(bits.view(np.float32)[0])


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([float(np.float32(loss)) for loss in LOSSES], 0.0),
        ([bfloat16(loss) for loss in LOSSES], 1.0),
        ([float(np.float16(loss)) for loss in LOSSES], 1.0),
        ([bfloat16(loss) + bfloat16(0.2) for loss in LOSSES], 1.0),
        # one loss that has few digits by chance
        ([2.5, *(float(np.float32(loss)) for loss in LOSSES[1:])], 0.0),
    ],
)
def test_losses_of_half_precision_are_found(found: list[float], expected: float) -> None:
    assert in_half_precision(found) == expected


@pytest.mark.parametrize(
    ("narrow", "averaged", "expected"),
    [(False, False, 0.0), (True, False, 1.0), (False, True, 1.0), (True, True, 1.0)],
)
def test_gradients_that_are_rounded_for_their_mean_are_found(
    narrow: bool, averaged: bool, expected: float
) -> None:
    def rounded(values: Any, applies: bool) -> Any:
        bits = np.asarray(values, np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFF0000) if applies else bits).view(np.float32)

    random = np.random.RandomState(0)
    of_ranks = [rounded(random.standard_normal((40, 40)), narrow) for _ in range(2)]
    mean = rounded(sum(of_ranks) / 2, averaged)
    # rounded as in mixed precision
    matrix = rounded(random.standard_normal((40, 40)), applies=True)
    actual = verification.reduction({"norm.weight": mean, "weight": matrix})
    assert actual["error"] == expected
