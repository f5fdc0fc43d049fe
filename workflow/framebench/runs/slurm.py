"""Jobs in SLURM's queue that an earlier call left."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from core import bounded, programs

_SECONDS = 60  # time limit of a SLURM command
_WAITING = ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_POLL_SECONDS = 5.0

#: File in the results: names of jobs that may be in the queue.
FILE = ".slurm-jobs"
_NAME = re.compile(r"SLURM run ID: (\S+)")
#: Snakemake's log lines of a submission, with the path of the job's log, and of a failed job.
_SUBMITTED = re.compile(r"submitted with SLURM jobid (\d+) \(log: (.*)\)\.$", re.MULTILINE)
_FAILED = re.compile(r"SLURM-job '(\d+)' failed")
#: SLURM's line in the log of a job that it ends, and the job states by reason.
_ENDED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+((?: DUE TO [A-Z ]+)?)")
_STATES = {
    "DUE TO TIME LIMIT": "TIMEOUT",
    "DUE TO NODE FAILURE": "NODE_FAIL",
    "DUE TO PREEMPTION": "PREEMPTED",
}
_MESSAGE = re.compile(r"^framebench: .*$", re.MULTILINE)
_LOG_BYTES = 2**16


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
    with bounded.open_to_append(results / FILE) as file:
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


def states(numbers: Iterable[str]) -> dict[str, str]:
    """Return the states of the jobs that SLURM still knows (five minutes after their end by
    default)."""
    wanted = f"--jobs={','.join(numbers)}"
    try:
        listed = output_of("squeue", "--states=all", "--noheader", "--format=%i|%T", wanted)
    except SlurmError:
        return {}
    return dict(line.split("|", 1) for line in listed.splitlines() if "|" in line)


def endings(log: str, numbers: Iterable[str]) -> dict[str, str]:
    """Return the final states of jobs, by number.

    States that SLURM still knows take precedence over those in the jobs' logs, whose paths are in
    the text of Snakemake's log.
    """
    known = states(numbers)
    written = {job: _ending(_end_of(path)) for job, path in _logs(log) if job in set(numbers)}
    return {**{job: status for job, status in written.items() if status}, **known}


def refusals(log: str) -> list[str]:
    """Return our own messages in the logs of jobs, each once, and missing logs of failed jobs.

    The text of Snakemake's log names the logs.
    """
    found: dict[str, None] = {}
    failed = set(_FAILED.findall(log))
    for job, path in _logs(log):
        if path.exists():
            found.update(dict.fromkeys(_MESSAGE.findall(_end_of(path))))
        elif job in failed:
            found[
                f"framebench: job {job} left no log at {path}: a node that runs jobs must see "
                f"{Path.cwd()} as this machine does"
            ] = None
    return list(found)


def _logs(log: str) -> list[tuple[str, Path]]:
    """Return number and log of each submitted job."""
    return [(job, Path(path)) for job, path in _SUBMITTED.findall(log)]


def _end_of(path: Path) -> str:
    """Return the end of a job's log; "" if there is no log."""
    try:
        return bounded.read_end(path, _LOG_BYTES)
    except OSError:
        return ""


def _ending(text: str) -> str:
    """Return SLURM's state of a job from the end of its log; "" if the log does not state it."""
    ended = _ENDED.findall(text)
    return _STATES.get(ended[-1].strip(), "CANCELLED") if ended else ""


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


def output_of(*command: str) -> str:
    """Return the output of a SLURM command. Raises SlurmError."""
    try:
        done = programs.run(command, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise SlurmError(command[:1], str(error)) from error
    if done.returncode:
        raise SlurmError(command, done.stderr.strip() or f"ended with {done.returncode}")
    return done.stdout
