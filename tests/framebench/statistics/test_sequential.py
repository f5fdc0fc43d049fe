"""Group-sequential sign test: boundaries by enumeration, and rates (more: benchmarks/promises)."""

from __future__ import annotations

import numpy as np
import pytest
from framebench.statistics import sequential
from framebench.statistics.sequential import LEVEL, LOOKS

from .gates import CASES, MARGIN, Gates, gates

GATES = 200
FEW = 18  # pairs that can be enumerated


@pytest.mark.parametrize("level", [LEVEL, LEVEL / 20])
def test_all_looks_together_spend_no_more_than_the_level(level: float) -> None:
    counts = sequential.critical_counts(level)
    looks = [look for look in LOOKS if look <= FEW]
    signs = np.arange(2**FEW)[:, np.newaxis] >> np.arange(FEW) & 1
    below = np.cumsum(signs, axis=1)[:, [look - 1 for look in looks]]
    wrong = (below <= counts[: len(looks)]).any(axis=1)
    assert 0 < wrong.mean() <= level


def test_a_decision_stays_and_an_open_case_has_the_bounds_of_its_last_look() -> None:
    good, bad = [1.0] * 8, [0.8] * 60
    first = sequential.bounds(good, MARGIN, 20)
    assert first.is_within(MARGIN)
    assert sequential.bounds(good + bad, MARGIN, 20) == first
    waiting = sequential.bounds([1.0, 0.9] * 15, MARGIN, 20)
    assert not waiting.decides(MARGIN)
    assert waiting.pairs == 27
    few = sequential.bounds(good[:7], MARGIN, 1)
    assert (few.interval, few.upper, few.pairs) == (None, None, 7)
    slow = sequential.bounds(bad[:12], MARGIN, 20)
    assert (slow.is_beyond(MARGIN), slow.pairs) == (True, 12), "8 are too few among 20 cases"
    assert sequential.bounds(bad[:8], MARGIN, 1).is_beyond(MARGIN)


def test_a_ratio_at_the_limit_counts_against_either_decision() -> None:
    limit = 1 - MARGIN
    assert not sequential.bounds([limit] * 40, MARGIN, 1).decides(MARGIN)
    assert not sequential.fixed_bounds([limit] * 40, 1).decides(MARGIN)


@pytest.mark.parametrize(
    ("pairs", "cases", "shown"), [(5, 1, 0), (6, 1, 1), (9, 20, 0), (10, 20, 1)]
)
def test_a_fixed_number_has_bounds_where_it_can_show_anything(
    pairs: int, cases: int, shown: bool
) -> None:
    assert (sequential.fixed_bounds([0.8] * pairs, cases).upper is not None) == shown


@pytest.mark.parametrize(
    ("sampled", "passed", "regressed"),
    [
        (Gates(), (0.9, 1), (0, 0.001)),
        (Gates(changed=0.9), (0, 0.001), (0.9, 1)),
        (Gates(changed=1 - MARGIN), (0, LEVEL), (0, LEVEL / CASES)),
        (Gates(all_at_limit=True), (0, 0.001), (0, LEVEL)),
        (Gates(sampler="drift", all_at_limit=True), (0, 0.001), (0, LEVEL)),
        (Gates(sampler="bimodal", changed=1 - MARGIN), (0, LEVEL), (0, LEVEL / CASES)),
        (Gates(sampler="stalls"), (0, 1), (0, 0.001)),  # stalls do not change the median
    ],
    ids=str,
)
def test_a_gate_is_wrong_no_more_often_than_promised(
    sampled: Gates, passed: tuple[float, float], regressed: tuple[float, float]
) -> None:
    actual = gates(np.random.default_rng(0), sampled, GATES)
    for rate, (low, high) in ((actual["passed"], passed), (actual["regression"], regressed)):
        error = 3 * max((edge * (1 - edge) / GATES) ** 0.5 for edge in (low, high, 0.001))
        assert low - error <= rate <= high + error
