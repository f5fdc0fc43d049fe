"""Initial values of another distribution, or of another parameter, are found."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.records import verifications
from harness.measuring.verification.errors import repeated, standard_errors

RANDOM = np.random.RandomState(0)
COUNT = 2**14
NORMAL = RANDOM.standard_normal(COUNT)
UNIFORM = RANDOM.uniform(-(3**0.5), 3**0.5, COUNT)
KURTOSIS = {"normal": 3.0, "uniform": 1.8}
LIMIT = verifications.EVERYWHERE["initial values"]


@pytest.mark.parametrize(("values", "name"), [(NORMAL, "normal"), (UNIFORM, "uniform")])
def test_values_of_the_right_distribution_pass(values: np.ndarray, name: str) -> None:
    assert standard_errors(0.1 + 0.02 * values, 0.1, 0.02, KURTOSIS[name]) < LIMIT / 2


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (NORMAL, "uniform"),
        (UNIFORM, "normal"),
        (NORMAL[np.abs(NORMAL) < 2] / NORMAL[np.abs(NORMAL) < 2].std(), "normal"),
        (1.2 * NORMAL, "normal"),
        (NORMAL + 0.2, "normal"),
    ],
    ids=["normal, not uniform", "uniform, not normal", "cut off", "wider", "moved"],
)
def test_another_distribution_is_found(values: np.ndarray, name: str) -> None:
    assert standard_errors(0.1 + 0.02 * values, 0.1, 0.02, KURTOSIS[name]) > LIMIT


def test_a_constant_must_be_exact() -> None:
    assert standard_errors(np.ones(5), 1.0, 0.0, 3.0) == 0.0
    assert standard_errors(np.array([1.0, 1.1]), 1.0, 0.0, 3.0) == float("inf")


def test_a_value_far_out_says_nothing_of_few() -> None:
    assert standard_errors(np.array([0.1] * 99 + [4.5]), 0.0, 1.0, 3.0) < 2 * LIMIT


@pytest.mark.parametrize("values", [NORMAL, UNIFORM], ids=["normal", "uniform"])
def test_a_row_of_another_deviation_is_found_in_any_axis(values: np.ndarray) -> None:
    kurtosis = KURTOSIS["normal" if values is NORMAL else "uniform"]
    for axis in range(3):
        array = values.reshape(32, 4, 128).copy()
        assert standard_errors(array, 0.0, 1.0, kurtosis) < LIMIT / 2
        np.moveaxis(array, axis, 0)[1] = 0.0
        assert standard_errors(array, 0.0, 1.0, kurtosis) > LIMIT


@pytest.mark.parametrize("shape", [(1, 64), (20, 1024)])
def test_repeated_rows_are_found_in_any_axis(shape: tuple[int, int]) -> None:
    array = np.tile(drawn(0, *shape), (40 // shape[0], 1))
    assert standard_errors(array, 0.0, 1.0, 3.0) > LIMIT
    assert standard_errors(array.T, 0.0, 1.0, 3.0) > LIMIT


def test_rows_of_few_values_differ_by_chance() -> None:
    assert standard_errors(drawn(0, 10000, 3), 0.0, 1.0, 3.0) < LIMIT
    assert standard_errors(drawn(0, 10000, 16), 0.0, 1.0, 3.0) < LIMIT


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_independent_values_are_within_the_bound() -> None:
    arrays = {str(seed): drawn(seed, 40, 120) for seed in range(60)}
    errors, _ = repeated(arrays)
    assert 0 < errors < LIMIT


@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_repeated_values_are_beyond_it(factor: float) -> None:
    arrays = {"one": drawn(1, 8, 16), "other": drawn(2, 8, 16), "again": factor * drawn(1, 8, 16)}
    errors, names = repeated(arrays)
    assert errors > LIMIT
    assert names == "one, again"


def test_arrays_of_different_shapes_are_not_compared() -> None:
    errors, _ = repeated({"one": drawn(1, 8, 16), "other": drawn(1, 16, 8)})
    assert errors == 0
