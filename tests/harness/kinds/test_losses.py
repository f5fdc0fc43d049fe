"""Losses that were computed in half precision are detected by their significant bits, however close
they are."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.kinds import verification

LOSSES = [3.0871234, 2.9012345, 2.7123456, 2.5234567, 2.3345678, 2.1456789]


def in_half_precision(found: Sequence[float]) -> float:
    """Return whether a training in mixed precision with these losses is said to compute them in
    half precision."""
    losses = iter(found)
    adapter: Any = SimpleNamespace(
        case=SimpleNamespace(precision="amp", parts=1),
        statistics=dict,
        step=lambda: next(losses),
        read=float,
        weights=lambda: {"weight": np.ones(2)},
    )
    reference: Any = SimpleNamespace(
        expected={"losses": LOSSES},
        arrays=lambda name: {"weight": np.ones(2)},
        rounding=lambda quantity, precision: {},
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
