"""Loader of tokens without a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from harness.loader import Batch, TokenLoads
from harness.loader.one_by_one import Sequences


class NumpyTokenLoader:
    """Loader that batches tokens with numpy. ``mistake``: changes its batches."""

    def __init__(self, mistake: Callable[[Iterator[Batch]], Iterator[Batch]] = iter) -> None:
        self._mistake = mistake

    def load(self, loads: TokenLoads) -> Iterator[Batch]:
        return self._mistake(self._load(loads))

    def _load(self, loads: TokenLoads) -> Iterator[Batch]:
        sequences = Sequences(loads)
        for first in range(0, len(sequences), loads.batch):
            numbers = range(first, min(first + loads.batch, len(sequences)))
            yield {"tokens": np.stack([sequences[n][0] for n in numbers])}
