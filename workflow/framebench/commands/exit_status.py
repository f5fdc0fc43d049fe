"""Exit status of a command, also for the Snakemake call that started it as a job.

A failed job would be buried under Snakemake's report, and Snakemake would always end with 1. So a
rule names a status file, the job succeeds, and the call ends with the status in the file.
"""

from __future__ import annotations

import os
from pathlib import Path

from core import bounded

#: Environment variable with the path of the status file.
STATUS_FILE = "FRAMEBENCH_STATUS_FILE"
#: Exit status of a process ended by a signal, minus the signal's number, as in shells.
SIGNAL_BASE = 128


class NotPassed(Exception):
    """A check that does not pass, with the exit status of its command."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def leave(status: int) -> int:
    """Return the exit status: ``status``, or 0 if it was written to the status file."""
    path = os.environ.get(STATUS_FILE)
    if not status or not path:
        return status
    with bounded.open_to_append(path) as file:
        file.write(f"{status}\n")
    return 0


def read(path: Path) -> int:
    """Return the first status in the status file; 0 if all commands ended with 0."""
    return next(map(int, bounded.read_text(path).splitlines()), 0)
