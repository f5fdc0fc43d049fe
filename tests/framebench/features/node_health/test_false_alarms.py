"""Simulated rates of false alarms on healthy nodes, and of bad nodes found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from framebench.statistics.verdicts import FALSE_ALARMS

from ...statistics.distributions import SAMPLERS
from .sets import MARGIN, called

SETS = 500
#: Most false alarms in so many sets: three standard errors above the promise.
MOST = SETS * FALSE_ALARMS + 3 * math.sqrt(SETS * FALSE_ALARMS * (1 - FALSE_ALARMS))
LIMIT = 1 - MARGIN


def false_alarms(
    sampler: str, factors: list[float], bad: set[int], figures: int = 2, margin: float = MARGIN
) -> int:
    random = np.random.default_rng(0)
    sets = (called(random, SAMPLERS[sampler], factors, figures, 5, margin) for _ in range(SETS))
    return sum(bool(entry - bad) for entry in sets)


@pytest.mark.parametrize(
    ("sampler", "factors", "bad"),
    [
        # One of four nodes lies exactly at the limit, the worst that counts as healthy.
        ("normal", [1, 1, 1, LIMIT], set()),
        ("skewed", [1, 1, 1, LIMIT], set()),
        ("bimodal", [1, 1, 1, 1], set()),
        # Permanent differences between nodes: the limit is relative to their median.
        ("normal", [1.03, 1, 0.97, LIMIT], set()),
        # Two bad nodes, which are left out of the others.
        ("normal", [1, 1, 1, 1, LIMIT, 0.7, 0.7], {5, 6}),
    ],
)  # fmt: skip
def test_a_healthy_node_is_called_slower_as_seldom_as_is_promised(
    sampler: str, factors: list[float], bad: set[int]
) -> None:
    assert false_alarms(sampler, factors, bad) <= MOST


@pytest.mark.parametrize("nodes", [3, 8])
def test_the_p_values_are_adjusted_for_all_figures_of_all_nodes(nodes: int) -> None:
    """Fail if p-values are not adjusted for all figures of all nodes.
    Without a margin, nothing else prevents false alarms."""
    assert false_alarms("normal", [1] * nodes, set(), figures=4, margin=1e-9) <= MOST


def test_bad_nodes_do_not_hide_each_other() -> None:
    random = np.random.default_rng(0)
    actual = [
        called(random, SAMPLERS["normal"], [1, 1, 1, 1, 1, 0.8, 0.8], 2, 5) for _ in range(50)
    ]
    assert actual == [{5, 6}] * 50
