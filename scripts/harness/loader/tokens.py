"""Sequences of tokens from files, one by one: the data set of a DataLoader."""

from __future__ import annotations

from typing import Any, Tuple

import numpy as np

from harness.loader import TokenLoads


class Sequences:
    """Requested sequences by position, with that position: int64 (length,).

    The file is mapped into memory by each process that reads it."""

    def __init__(self, loads: TokenLoads) -> None:
        self._asked = loads
        self._tokens: Any = None

    def __len__(self) -> int:
        return len(self._asked.starts)

    def __getitem__(self, number: int) -> Tuple[Any, int]:
        loads = self._asked
        if self._tokens is None:
            self._tokens = np.memmap(loads.path, np.dtype(loads.dtype).newbyteorder("<"), "r")
        start = int(loads.starts[number])
        return self._tokens[start : start + loads.length].astype(np.int64), number
