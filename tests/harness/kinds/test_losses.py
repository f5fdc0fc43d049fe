"""Losses that were computed in half precision are detected by their significant bits, however close
they are."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.adapter import Case
from harness.kinds import verification

LOSSES = [3.0871234, 2.9012345, 2.7123456, 2.5234567, 2.3345678, 2.1456789]


def in_half_precision(found: Sequence[float]) -> float:
    """Return whether a training in mixed precision with these losses is said to compute them in
    half precision."""
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
    quantities = {
        entry["quantity"]: entry for entry in verification.compare_training(adapter, reference)
    }
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
        # one that is round by chance
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
    """Fail if gradients that two ranks round to bfloat16, before or behind their sum, pass."""

    def rounded(values: Any, applies: bool) -> Any:
        bits = np.asarray(values, np.float32).view(np.uint32)
        return (bits & np.uint32(0xFFFF0000) if applies else bits).view(np.float32)

    random = np.random.RandomState(0)
    of_ranks = [rounded(random.standard_normal((40, 40)), narrow) for _ in range(2)]
    mean = rounded(sum(of_ranks) / 2, averaged)
    matrix = rounded(random.standard_normal((40, 40)), applies=True)  # as mixed precision has it
    actual = verification.reduction({"norm.weight": mean, "weight": matrix})
    assert actual["error"] == expected
