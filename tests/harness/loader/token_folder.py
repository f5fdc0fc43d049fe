"""Token files, as make-data writes them, and a loader of them without a framework."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

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


def tokens(root: Path, train: int = 1000, val: int = 300, dtype: str = "uint16") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", train), ("val", val)):
        drawn = np.random.RandomState(count).randint(0, 257, count)
        (root / f"{split}.bin").write_bytes(drawn.astype(dtype).tobytes())
        (root / f"{split}.json").write_text(json.dumps({"dtype": dtype, "vocabulary": 257}))
    return root
