"""Errors of a user's model: which part of them rounding explains."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from harness.measuring.verification import float64_run
from harness.measuring.verification.errors import compare_arrays
from harness.measuring.verification.float64_run import Observed


def observed(error: float) -> Observed:
    gradients = {"w": np.array([1.0, error])}
    return Observed([np.ones(1)], [np.ones(1)], gradients, None)


@pytest.mark.parametrize(
    ("effects", "draws", "explained"),
    [
        ([1e-6, 1e-6, 5e-4, 1e-2], 3, 5e-4),  # the third draw moves a value across a kink
        ([1e-3, 1e-6], 1, 1e-3),
        ([1e-6] * 20, 8, 1e-6),
    ],
)
def test_weights_are_moved_until_the_error_is_explained_or_shown(
    monkeypatch: pytest.MonkeyPatch, effects: list[float], draws: int, explained: float
) -> None:
    drawn: list[int] = []

    @contextlib.contextmanager
    def moved(adapter: Any, unit: float, draw: int) -> Iterator[Any]:
        drawn.append(draw)
        yield None

    case = SimpleNamespace(mode="train", precision="fp32")
    adapter: Any = SimpleNamespace(case=case)
    monkeypatch.setattr(float64_run, "moved_weights", moved)
    monkeypatch.setattr(float64_run, "observe", lambda *_: observed(effects[len(drawn) - 1]))
    errors = compare_arrays("gradients", observed(1e-3).gradients, observed(0.0).gradients, 0.05)
    actual = float64_run.explain(adapter, errors, observed(0.0), 1e-7)
    assert drawn == [*range(draws)]
    assert actual[1]["error"] == pytest.approx(1e-3, rel=0.01)
    assert actual[1]["rounding"] == pytest.approx(min(3 * explained, 1e-3), rel=0.01)
