"""Jobs in SLURM's queue that an earlier call left behind."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..files import bounded

_SECONDS = 60  # for a command of SLURM's
_WAITING = ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_POLL_SECONDS = 5.0

#: In the results: names of jobs that are, or may be, in the queue.
FILE = ".slurm-jobs"
_NAME = re.compile(r"SLURM run ID: (\S+)")
#: A submission in Snakemake's log, with the path of the job's own log, and a job that failed.
_SUBMITTED = re.compile(r"submitted with SLURM jobid (\d+) \(log: (.*)\)\.$", re.MULTILINE)
_FAILED = re.compile(r"SLURM-job '(\d+)' failed")
#: What SLURM writes into the log of a job that it ends, and the states that this stands for.
_ENDED = re.compile(r"\*\*\* (?:JOB|STEP) \S+ ON \S+ CANCELLED AT \S+((?: DUE TO [A-Z ]+)?)")
_STATES = {
    "DUE TO TIME LIMIT": "TIMEOUT",
    "DUE TO NODE FAILURE": "NODE_FAIL",
    "DUE TO PREEMPTION": "PREEMPTED",
}
_MESSAGE = re.compile(r"^framebench: .*$", re.MULTILINE)
_LOG_BYTES = 2**16


class SlurmError(RuntimeError):
    """A command of SLURM's failed; the message says which and why, ``words`` why alone."""

    def __init__(self, command: Sequence[str], words: str) -> None:
        super().__init__(f"{' '.join(command)}: {words}")
        self.words = words


class SlurmJob(NamedTuple):
    """A job in the queue. ``state`` as SLURM names it."""

    id: str
    state: str


def note(log: str, results: Path) -> None:
    """Keep the name that all jobs of this call have, which the text of Snakemake's log tells, so
    that the next call knows them should this one be killed."""
    with bounded.open_to_append(results / FILE) as file:
        file.writelines(f"{name}\n" for name in _NAME.findall(log))


def jobs(results: Path) -> list[SlurmJob]:
    """List the jobs of earlier calls for this folder that are still in the queue. Raises
    SlurmError."""
    try:
        names = bounded.read_text(results / FILE).split()
    except FileNotFoundError:
        return []
    if not names:
        return []
    listed = told("squeue", "--me", "--noheader", "--format=%i|%T", f"--name={','.join(names)}")
    return [SlurmJob(*line.split("|", 1)) for line in listed.splitlines() if "|" in line]


def states(numbers: Iterable[str]) -> dict[str, str]:
    """Of those jobs that SLURM still knows (by default for five minutes after their end)."""
    wanted = f"--jobs={','.join(numbers)}"
    try:
        listed = told("squeue", "--states=all", "--noheader", "--format=%i|%T", wanted)
    except SlurmError:
        return {}
    return dict(line.split("|", 1) for line in listed.splitlines() if "|" in line)


def endings(log: str, numbers: Iterable[str]) -> dict[str, str]:
    """Tell how those jobs ended, by number: as SLURM still knows, else as it has written into their
    own logs, which the text of Snakemake's log names."""
    known = states(numbers)
    written = {job: _ending(_end_of(path)) for job, path in _logs(log) if job in set(numbers)}
    return {**{job: status for job, status in written.items() if status}, **known}


def refusals(log: str) -> list[str]:
    """List our own messages in the logs of the jobs that the text of Snakemake's log names, each
    once, and the logs that are missing although their jobs failed."""
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
    """Number and log of each job that was submitted."""
    return [(job, Path(path)) for job, path in _SUBMITTED.findall(log)]


def _end_of(path: Path) -> str:
    """The end of a job's log; "" where there is none."""
    try:
        return bounded.read_end(path, _LOG_BYTES)
    except OSError:
        return ""


def _ending(text: str) -> str:
    """The state of a job whose log has this end, as SLURM names it; "" where it does not tell."""
    ended = _ENDED.findall(text)
    return _STATES.get(ended[-1].strip(), "CANCELLED") if ended else ""


def settle(results: Path, say: Callable[[str], None], poll: float = _POLL_SECONDS) -> int:
    """Of the jobs that a killed call left: cancel those that wait, and wait for those that run,
    whose records will count. Returns how many there were. Raises SlurmError."""
    found = jobs(results)
    waiting = [job.id for job in found if job.state in _WAITING]
    if waiting:
        told("scancel", *waiting)
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


def refusal(options: Sequence[str]) -> str:
    """Why SLURM takes no job with these options of ``sbatch``, in its own words, or why it cannot
    be asked; "" where it would take one. Nothing is submitted."""
    try:
        told("sbatch", "--test-only", *options, "--wrap=true")
    except SlurmError as error:
        return " ".join(error.words.replace("sbatch: error: ", "").split())
    return ""


def told(*command: str) -> str:
    """What a command of SLURM's prints. Raises SlurmError."""
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise SlurmError(command[:1], str(error)) from error
    if done.returncode:
        raise SlurmError(command, done.stderr.strip() or f"ended with {done.returncode}")
    return done.stdout
