"""Statistics of dropout: correct dropout agrees, and each mistake shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.measuring import dropout

RATE, PASSES = 0.2, 128
BOUND = 6.0
#: Outputs without dropout: (samples, positions, features), and a second one without positions.
PLAIN = [1 + np.arange(2.0 * 3 * 8).reshape(2, 3, 8) / 20, np.linspace(1, 2, 16).reshape(2, 8)]
SCALED = [(1 - RATE) * array for array in PLAIN]


def masked(
    seed: int, shared: tuple[int, ...] = (), factor: float = 1 / (1 - RATE), rate: float = RATE
) -> Callable[[], Any]:
    """Return outputs with dropout, whose masks are the same along the ``shared`` axes."""
    random = np.random.RandomState(seed)

    def outputs() -> list[Any]:
        actual = []
        for array in PLAIN:
            shape = [1 if axis in shared else n for axis, n in enumerate(array.shape)]
            actual.append(array * (random.random_sample(shape) >= rate) * factor)
        return actual

    return outputs


def deviations(outputs: Callable[[], Any], seed: int = 0) -> dict[str, float]:
    """Return the errors of ``outputs`` against a reference with this seed."""
    expected = dropout.sampled(masked(seed), PLAIN, SCALED, PASSES)
    known = dropout.moments(expected, PLAIN, SCALED)
    return dropout.deviations(dropout.sampled(outputs, PLAIN, SCALED, PASSES), known, 1e-4)


def test_what_is_right_is_off_by_few_standard_errors() -> None:
    errors = np.array([list(deviations(masked(s), s + 1).values()) for s in range(0, 80, 2)])
    assert errors.max() < 4.5
    assert np.mean(errors > 1.96) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize(
    ("mistake", "statistic"),
    [
        ({"factor": 1.0}, "scale"),
        ({"rate": 0.3, "factor": 1 / 0.7}, "amount"),
        ({"rate": 0.0, "factor": 1.0}, "amount"),
        ({"shared": (0,)}, "shared by samples"),
        ({"shared": (1,)}, "shared by positions"),
        ({"shared": (2,)}, "shared by features"),
    ],
)
def test_a_mistake_is_off_by_many(mistake: dict[str, Any], statistic: str) -> None:
    actual = deviations(masked(1, **mistake))
    assert actual[f"output 0, {statistic}"] > BOUND


def test_rounding_alone_is_no_difference() -> None:
    """Fail if an output that no dropout reaches must have every bit of the reference's."""
    plain = [np.ones((2, 4))]
    known = dropout.moments(dropout.sampled(lambda: plain, plain, plain, 16), plain, plain)
    rounded = dropout.sampled(lambda: [plain[0] + 1e-6], plain, plain, 16)
    assert max(dropout.deviations(rounded, known, 1e-4).values()) < 1
    moved = dropout.sampled(lambda: [plain[0] + 0.01], plain, plain, 16)
    assert max(dropout.deviations(moved, known, 1e-4).values()) > BOUND


def test_the_same_mask_each_time_is_no_dropout() -> None:
    outputs = masked(0)()
    with pytest.raises(Mismatch, match="has left out the same elements 16 times"):
        dropout.sampled(lambda: outputs, PLAIN, SCALED, 16)


def losses(seed: int, count: int = dropout.STEPS, spread: float = 0.1) -> Any:
    return 10 + spread * np.random.RandomState(seed).standard_normal(count)


#: Mean and variance of a reference's losses, and the number of passes behind them.
LOSSES = {"losses": [10.0, 0.01], "passes": 256}


def test_losses_of_steps_with_other_masks_are_off_by_few_standard_errors() -> None:
    errors = [dropout.loss_error(losses(seed), LOSSES, 1e-4) for seed in range(200)]
    assert max(errors) < 4.5


@pytest.mark.parametrize(
    "found",
    [
        losses(0) + 0.3,
        losses(0, spread=0.005),
        np.full(dropout.STEPS, 10.1),
    ],
    ids=["others", "less dropout", "the same masks in each step"],
)
def test_a_mistake_in_training_steps_is_off_by_many(found: Any) -> None:
    assert dropout.loss_error(found, LOSSES, 1e-4) > BOUND


def test_losses_without_a_variance_are_of_no_dropout() -> None:
    unmoved = {"losses": [10.0, 0.0], "passes": 256}
    assert dropout.loss_error([10.0001] * dropout.STEPS, unmoved, 1e-4) < 1
