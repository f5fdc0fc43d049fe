"""Barrier between the ranks of a node, without a framework or connection."""

from __future__ import annotations

import os
import time

#: Seconds between two looks: short against a step, but no load for the waiting core.
_INTERVAL = 0.001


class Barrier:
    """Barrier of ``ranks`` processes by empty files in their common ``folder``.

    Each leaves a file and waits until all exist. The launcher ends ranks that wait for one that
    never comes."""

    def __init__(self, folder: str, rank: int, ranks: int) -> None:
        self._folder, self._rank, self._ranks = folder, rank, ranks
        self._passed = 0

    def __call__(self) -> None:
        """Return when all ranks have called it as often as this one. Raises OSError."""
        self._passed += 1
        prefix = f"barrier{self._passed}-"
        with open(os.path.join(self._folder, f"{prefix}{self._rank}"), "x", encoding="utf-8"):
            pass
        while sum(name.startswith(prefix) for name in os.listdir(self._folder)) < self._ranks:
            time.sleep(_INTERVAL)
