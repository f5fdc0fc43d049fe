"""Dropout's effect on outputs: as many masks as needed, each drawn anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.adapter import Mismatch
from harness.measuring.verification import masks

#: Probability that a unit is dropped.
RATE = 0.25
#: Relative deviation expected from one dropped and one kept unit.
EXPECTED = (RATE / (1 - RATE)) ** 0.5


class Dropping:
    """Outputs with dropout, which count their calls."""

    def __init__(self, plain: Any, seed: int = 0) -> None:
        self.plain, self.asked = np.asarray(plain), 0
        self._random = np.random.RandomState(seed)

    def __call__(self) -> Any:
        self.asked += 1
        kept = self._random.random_sample(self.plain.size) >= RATE
        return self.plain * kept / (1 - RATE)


def test_few_units_take_more_masks() -> None:
    many = Dropping(np.ones(4096))
    assert masks.distance(many, many.plain) == pytest.approx(EXPECTED, rel=masks.SURE)
    assert many.asked == masks.LEAST
    few = [Dropping(np.arange(1.0, 13.0), seed) for seed in range(50)]
    actual = [masks.distance(entry, entry.plain) for entry in few]
    assert np.std(actual) < 1.5 * masks.SURE * EXPECTED, "eight masks have three times as much"
    assert np.mean(actual) == pytest.approx(EXPECTED, rel=masks.SURE)
    assert np.mean([entry.asked for entry in few]) > 3 * masks.LEAST


def test_the_same_mask_each_time_is_no_dropout() -> None:
    masked = np.array([2.0, 0.0, 2.0, 0.0])
    with pytest.raises(Mismatch, match="has left out the same elements 8 times"):
        masks.distance(lambda: masked, np.ones(4))
