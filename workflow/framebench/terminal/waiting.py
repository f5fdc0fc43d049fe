"""Jobs that a call waits for, and their names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..plan.tasks import PendingTask

#: Singular and plural of each kind of job, in the order of the status line.
NOUNS = {
    "run": ("run", "runs"),
    "search": ("largest batch", "largest batches"),
    "environment": ("environment", "environments"),
    "probe": ("peak benchmark", "peak benchmarks"),
    "reference": ("reference", "references"),
    "comparison": ("verification", "verifications"),
    "tables": ("report", "reports"),
}


class Awaited(NamedTuple):
    """A job. ``label``: shown name; ``log``: its log file.
    ``record``: file that it writes, None if that does not tell its outcome."""

    task: PendingTask
    label: str
    record: Path | None = None
    log: Path | None = None

    @property
    def kind(self) -> str:
        return self.task.kind


def count_of(number: int, kind: str, done: int | None = None) -> str:
    """Return a count with its noun: ``84 runs``, or ``12/84 runs``."""
    noun = NOUNS[kind][number != 1]
    return f"{number} {noun}" if done is None else f"{done}/{number} {noun}"
