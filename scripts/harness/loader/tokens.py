"""Sequences of tokens from files, one by one: the data set of a DataLoader."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from harness.loader import TokenLoads, features


class Sequences:
    """Requested sequences by position, with that position: int64 (length,).

    A file of numbers is mapped into memory by each process that reads it; a record is read by
    itself."""

    def __init__(self, asked: TokenLoads) -> None:
        self._asked = asked
        self._tokens: Any = None

    def __len__(self) -> int:
        return len(self._asked.starts)

    def __getitem__(self, number: int) -> Tuple[Any, int]:
        asked = self._asked
        if asked.records:
            arrays = features.numbers(asked.records[number], asked.format)
            return features.in_a_row(arrays, asked.features), number
        if self._tokens is None:
            self._tokens = np.memmap(asked.path, np.dtype(asked.dtype).newbyteorder("<"), "r")
        start = int(asked.starts[number])
        return self._tokens[start : start + asked.length].astype(np.int64), number
