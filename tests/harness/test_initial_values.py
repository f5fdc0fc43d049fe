"""Initial values that two parameters share are told from those that are drawn independently."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.records import verifications
from harness.measuring.verification.errors import repeated

BOUND = verifications.EVERYWHERE["initial values"]


def drawn(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def test_independent_values_are_within_the_bound() -> None:
    arrays = {str(seed): drawn(seed, 40, 120) for seed in range(60)}
    errors, _ = repeated(arrays)
    assert 0 < errors < BOUND


@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_repeated_values_are_beyond_it(factor: float) -> None:
    arrays = {"one": drawn(1, 8, 16), "other": drawn(2, 8, 16), "again": factor * drawn(1, 8, 16)}
    errors, names = repeated(arrays)
    assert errors > BOUND
    assert names == "one, again"


def test_arrays_of_different_shapes_are_not_compared() -> None:
    errors, _ = repeated({"one": drawn(1, 8, 16), "other": drawn(1, 16, 8)})
    assert errors == 0
