"""Loader of tokens without a framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from harness.loader import LoadedTokens, TokenLoads
from harness.loader.one_by_one import Sequences


class NumpyTokenLoader:
    """Loader that batches tokens with numpy. ``mistake``: changes its batches."""

    def __init__(
        self, mistake: Callable[[Iterator[LoadedTokens]], Iterator[LoadedTokens]] | None = None
    ) -> None:
        self._mistake = mistake

    def load(self, loads: TokenLoads) -> Iterator[LoadedTokens]:
        arguments = self._load(loads)
        return self._mistake(arguments) if self._mistake else arguments

    def _load(self, loads: TokenLoads) -> Iterator[LoadedTokens]:
        sequences = Sequences(loads)
        for first in range(0, len(sequences), loads.batch):
            numbers = range(first, min(first + loads.batch, len(sequences)))
            yield LoadedTokens(np.stack([sequences[n][0] for n in numbers]), np.array(numbers))
