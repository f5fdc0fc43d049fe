"""Time that a call has spent in runs and checks, from the records that it made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from core import bounded

from .searches import FOLDER as SEARCHES

#: Folders with records in the results.
FOLDERS = ("runs", "verification", "peak_flops", SEARCHES)


class Spending:
    """Node seconds of the records in a results folder that are made after this is.

    ``runs``: number of those of runs; ``newest``: time at which the latest record was written, None
    before the first.
    """

    def __init__(self, results: Path) -> None:
        self._results = results
        self._before = {*self._files()}
        self._seconds: dict[Path, float] = {}
        self.runs = 0
        self.newest: float | None = None

    def seconds(self) -> float:
        """Return the wall seconds of all new records, times their nodes."""
        for path in self._files():
            if path not in self._before and path not in self._seconds:
                self._seconds[path] = _seconds(path)
                self.runs += path.is_relative_to(self._results / "runs")
                self.newest = max(self.newest or 0.0, path.stat().st_mtime)
        return sum(self._seconds.values())

    def _files(self) -> Iterator[Path]:
        for name in FOLDERS:
            yield from (self._results / name).rglob("*.json")


def _seconds(path: Path) -> float:
    """Return the node seconds of a record; 0 for one that is not read, as others report it."""
    try:
        record = json.loads(bounded.read_text(path))
        nodes = int(record["case"].get("nodes") or 1)
        return float(record["wall_seconds"]) * nodes
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0.0
