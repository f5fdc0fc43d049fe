"""Ranks, which tests without assumptions about a distribution are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def average_ranks(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The rank of each of the finite ``values``, from 1 for the smallest; those that are equal
    share the mean of their ranks.

    As ``scipy.stats.rankdata`` has it, which takes ten times as long for the 100 steps of a window,
    and whose module takes longer to import than the records of 1,000 runs to read."""
    ordered = np.sort(values)
    first, last = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    ranks: NDArray[np.floating] = (first + last + 1) / 2
    return ranks
