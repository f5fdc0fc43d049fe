"""A barrier between the ranks of a node that needs no framework, and no connection."""

from __future__ import annotations

import os
import time

#: Between two looks: short against a step, and long enough not to load the core of who waits.
_INTERVAL = 0.001


class Barrier:
    """Each of ``ranks`` processes leaves an empty file in their common ``folder``, and waits until
    all files are there. Who never comes is waited for: the launcher ends the others."""

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
