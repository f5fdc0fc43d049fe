"""Sequences of tokens from a file, one by one: what a DataLoader takes as a data set."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from harness.loader import TokenLoads


class Sequences:
    """Those that are asked for, by their place in that: int64 (length,), and that place. The file
    is mapped into memory by each process that reads it."""

    def __init__(self, asked: TokenLoads) -> None:
        self._asked = asked
        self._tokens: Any = None

    def __len__(self) -> int:
        return len(self._asked.starts)

    def __getitem__(self, number: int) -> Tuple[Any, int]:
        asked = self._asked
        if self._tokens is None:
            self._tokens = np.memmap(asked.path, np.dtype(asked.dtype), "r")
        start = int(asked.starts[number])
        return self._tokens[start : start + asked.length].astype(np.int64), number
