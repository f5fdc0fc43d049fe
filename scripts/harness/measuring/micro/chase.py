"""Latency of memory by a chain of pointers (`chase.c` next to this file).

Each cache line of a working set holds the address of another, in a random cycle through all of
them, so that neither order nor prefetching predicts the next (as lat_mem_rd of lmbench; McVoy and
Staelin, "lmbench: Portable Tools for Performance Analysis", 1996).
"""

from __future__ import annotations

import ctypes
import os
from typing import Any, List

from harness.adapter import Mismatch
from harness.measuring.micro import compiled, stream

#: Bytes of the smallest working set.
SMALLEST = 4096
_LINE = stream.LINE
_SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "chase.c")


def kernels() -> ctypes.CDLL:
    """Return the compiled kernels. Raises Unsupported where they cannot be compiled."""
    loaded = compiled.library(_SOURCE, "the latency of memory")
    loaded.chase.argtypes = [ctypes.c_void_p, ctypes.c_long]
    loaded.chase.restype = ctypes.c_void_p
    return loaded


def sizes(largest: int) -> List[int]:
    """Return the sizes of the working sets in bytes, whole cache lines: each twice the one before,
    and last ``largest``."""
    doubled = [SMALLEST]
    while 2 * doubled[-1] <= largest:
        doubled.append(2 * doubled[-1])
    return sorted({*doubled, max(SMALLEST, largest // _LINE * _LINE)})


class Chain:
    """Cycle through the first ``size`` bytes of ``room``, a float64 array of
    :func:`stream.aligned`.

    ``lines``: number of its cache lines."""

    def __init__(self, kernels: Any, room: Any, size: int, seed: int) -> None:
        import numpy as np

        self.lines = size // _LINE
        self._chase = kernels.chase
        self._base = room.ctypes.data
        self._order = np.random.RandomState(seed).permutation(self.lines)
        lines = room[: size // room.itemsize].view(np.int64).reshape(self.lines, -1)
        lines[self._order, 0] = self._base + _LINE * np.roll(self._order, -1)
        self._steps = 0
        self._place = self._address(0)

    def _address(self, step: int) -> int:
        return int(self._base + _LINE * self._order[step % self.lines])

    def run(self, steps: int) -> None:
        """Follow ``steps`` pointers, from where the last run ended."""
        self._place = self._chase(self._place, steps)
        self._steps += steps

    def check(self) -> None:
        """Raise Mismatch where the chain is not at the expected line."""
        expected = self._address(self._steps)
        if self._place != expected:
            raise Mismatch(
                f"{self._steps} steps through {self.lines} lines ended {self._place - expected} "
                "bytes from where they lead"
            )
