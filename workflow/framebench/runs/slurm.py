"""Jobs in SLURM's queue that an earlier call left."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from core import bounded, programs

_SECONDS = 60  # time limit of a SLURM command
_WAITING = ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_POLL_SECONDS = 5.0

#: File in the results: names of jobs that may be in the queue.
FILE = ".slurm-jobs"
_NAME = re.compile(r"SLURM run ID: (\S+)")
#: Logs of jobs in Snakemake's log, and our own message in one of them.
_LOG = re.compile(r"submitted with SLURM jobid \d+ \(log: (.*)\)\.$", re.MULTILINE)
_MESSAGE = re.compile(r"^framebench: .*$", re.MULTILINE)


class SlurmError(RuntimeError):
    """A failed SLURM command; the message names it and the reason."""

    def __init__(self, command: Sequence[str], text: str) -> None:
        super().__init__(f"{' '.join(command)}: {text}")


class SlurmJob(NamedTuple):
    """A job in the queue. ``state`` as SLURM names it."""

    id: str
    state: str


def note(log: str, results: Path) -> None:
    """Store the common name of this call's jobs, found in Snakemake's log.

    The next call finds the jobs by it if this call is killed.
    """
    with (results / FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in _NAME.findall(log))


def jobs(results: Path) -> list[SlurmJob]:
    """Return the jobs of earlier calls for this folder that are still in the queue.

    Raises SlurmError.
    """
    try:
        names = bounded.read_text(results / FILE).split()
    except FileNotFoundError:
        return []
    if not names:
        return []
    listed = output_of(
        "squeue", "--me", "--noheader", "--format=%i|%T", f"--name={','.join(names)}"
    )
    return [SlurmJob(*line.split("|", 1)) for line in listed.splitlines() if "|" in line]


def refusals(log: str) -> list[str]:
    """Return our own messages in the logs of jobs, each once; Snakemake's log names the logs."""
    paths = filter(Path.exists, map(Path, _LOG.findall(log)))
    texts = [bounded.read_end(path, bounded.LARGEST_FILE) for path in paths]
    return list(dict.fromkeys(message for text in texts for message in _MESSAGE.findall(text)))


def settle(results: Path, say: Callable[[str], None], poll: float = _POLL_SECONDS) -> int:
    """Cancel waiting jobs of a killed call and wait for its running jobs, whose records count.

    Returns the number of jobs. Raises SlurmError.
    """
    found = jobs(results)
    waiting = [job.id for job in found if job.state in _WAITING]
    if waiting:
        output_of("scancel", *waiting)
        say(f"An earlier call was killed: {len(waiting)} of its jobs that waited are cancelled.")
    running = [job.id for job in found if job.state not in _WAITING]
    if running:
        say(
            f"An earlier call was killed: waiting for {len(running)} of its jobs that still run "
            f"({', '.join(running)}). To end them: scancel {' '.join(running)}"
        )
    while jobs(results):
        time.sleep(poll)
    (results / FILE).unlink(missing_ok=True)
    return len(found)


def cancel(results: Path) -> None:
    """Cancel all jobs of an interrupted call. Snakemake leaves out those that it submits or asks
    about at that moment. Raises SlurmError."""
    if found := [job.id for job in jobs(results)]:
        output_of("scancel", *found)


def output_of(*command: str) -> str:
    """Return the output of a SLURM command. Raises SlurmError."""
    try:
        done = programs.run(command, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise SlurmError(command[:1], str(error)) from error
    if done.returncode:
        raise SlurmError(command, done.stderr.strip() or f"ended with {done.returncode}")
    return done.stdout
