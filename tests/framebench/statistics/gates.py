"""Simulated gates: families of cases, measured in pairs under machine drift."""

from __future__ import annotations

import numpy as np
from framebench.statistics import intervals, margins

from .distributions import machine

MARGIN, PAIRS, OWN = 0.05, 12, 0.01


def called(
    random: np.random.Generator, factors: tuple[float, ...], families: int, pairs: int = PAIRS
) -> dict[str, float]:
    """Return the fractions of families with a case beyond the margin, and with all cases within.
    Each case has its factor and its own noise OWN; all share the drift of a session."""
    count = len(factors)
    found = {"beyond": 0, "within": 0}
    for drift in machine(random, families, pairs * count * 2):
        runs = drift.reshape(pairs, count, 2)
        runs = random.permuted(runs, axis=-1) * np.exp(random.normal(0, OWN, runs.shape))
        ratios = (runs[..., 1] / runs[..., 0] * factors).T.tolist()
        claims = [margins.of_pairs(one, MARGIN) for one in ratios]
        beyond = intervals.family_wise([one.beyond for one in claims])
        found["beyond"] += min(beyond) <= margins.LEVEL
        found["within"] += max(one.within for one in claims) <= margins.LEVEL
    return {name: number / families for name, number in found.items()}
