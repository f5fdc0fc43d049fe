"""Jobs in SLURM's queue that an earlier call left behind."""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_SECONDS = 60  # for a command of SLURM's
_WAITING = ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_POLL_SECONDS = 5.0


class SlurmError(RuntimeError):
    """A command of SLURM's failed; the message says which and why."""


class Job(NamedTuple):
    """A job in the queue. ``state`` as SLURM names it."""

    id: str
    state: str


def prefix(results: Path) -> str:
    """What the names of all jobs begin with that measure into a folder."""
    return f"framebench-{hashlib.sha256(str(results.absolute()).encode()).hexdigest()[:12]}"


def jobs(name: str) -> list[Job]:
    """This user's jobs in the queue whose names begin with ``name``. Raises SlurmError."""
    listed = _told("squeue", "--me", "--noheader", "--format=%i|%T|%j")
    rows = [line.split("|", 2) for line in listed.splitlines()]
    return [Job(row[0], row[1]) for row in rows if len(row) == 3 and row[2].startswith(name)]


def settle(name: str, say: Callable[[str], None], poll: float = _POLL_SECONDS) -> int:
    """Of the jobs that a call left which was killed: cancel those that wait, and wait for those
    that run, whose records will count. Returns how many there were. Raises SlurmError."""
    found = jobs(name)
    waiting = [job.id for job in found if job.state in _WAITING]
    if waiting:
        _told("scancel", *waiting)
        say(f"An earlier call was killed: {len(waiting)} of its jobs that waited are cancelled.")
    running = [job.id for job in found if job.state not in _WAITING]
    if running:
        say(
            f"An earlier call was killed: waiting for {len(running)} of its jobs that still run "
            f"({', '.join(running)}). To end them: scancel {' '.join(running)}"
        )
    while jobs(name):
        time.sleep(poll)
    return len(found)


def _told(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SlurmError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise SlurmError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
