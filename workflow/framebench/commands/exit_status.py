"""Exit status of a command, also for the call of Snakemake that has started it as a job.

A job that fails would be buried under Snakemake's own report, and Snakemake would end with 1
whatever the status is. So a rule names a file that gets the status, the job succeeds, and the call
ends with the status in the file.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from ..files import bounded

#: Names the file that gets the status.
STATUS_FILE = "FRAMEBENCH_STATUS_FILE"
#: Added to the number of the signal that ended a process, as shells do.
SIGNAL_BASE = 128


class Ended(NamedTuple):
    """A command that did not end with 0."""

    command: str
    status: int


def leave(command: str, status: int) -> int:
    """Return the status to end with: ``status``, or 0 where it was written to the file."""
    path = os.environ.get(STATUS_FILE)
    if not status or not path:
        return status
    with bounded.open_to_append(path) as file:
        file.write(f"{command} {status}\n")
    return 0


def read(path: Path) -> Ended | None:
    """Return the first command in the file, None where all have ended with 0."""
    for line in bounded.read_text(path).splitlines():
        command, status = line.split(" ")
        return Ended(command, int(status))
    return None
