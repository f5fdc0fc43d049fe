"""Jobs in SLURM's queue that an earlier call left; and the nodes that SLURM knows, with the reasons
why some cannot be measured now."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from core import bounded, programs

from ..config.cluster import Cluster
from ..config.validation import ConfigError

_SECONDS = 60  # time limit of a SLURM command
_WAITING = ("PENDING", "SUSPENDED", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")
_POLL_SECONDS = 5.0
#: File in the results: names of jobs that may be in the queue.
FILE = ".slurm-jobs"
_NAME = re.compile(r"SLURM run ID: (\S+)")

#: States of nodes out of service, without the letter that sinfo appends.
_OUT_OF_SERVICE = frozenset(
    ("down", "drain", "drained", "draining", "fail", "failing")
    + ("error", "future", "inval", "maint", "unknown")
)
#: Suffix of nodes that do not answer; other suffixes stand for power saving and reservations.
_SILENT = "*"


class SlurmError(RuntimeError):
    """A failed SLURM command; the message names it and the reason."""


def note(log: str, results: Path) -> None:
    """Store the common name of this call's jobs, found in Snakemake's log. The next call finds the
    jobs by it if this call is killed."""
    with (results / FILE).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in _NAME.findall(log))


def jobs(results: Path) -> dict[str, str]:
    """Return the states of jobs of earlier calls for this folder that are still in the queue, by
    job id. Raises SlurmError."""
    path = results / FILE
    if not path.exists() or not (names := bounded.read_text(path).split()):
        return {}
    listed = output_of(
        "squeue", "--me", "--noheader", "--format=%i|%T", f"--name={','.join(names)}"
    )
    return dict(line.split("|", 1) for line in listed.splitlines() if "|" in line)


def settle(results: Path, say: Callable[[str], None]) -> None:
    """Cancel waiting jobs of a killed call and wait for its running jobs, whose records count.
    Raises SlurmError."""
    found = jobs(results)
    waiting = [job for job, state in found.items() if state in _WAITING]
    if waiting:
        output_of("scancel", *waiting)
        say(f"An earlier call was killed: {len(waiting)} of its waiting jobs are cancelled.")
    running = [job for job in found if job not in waiting]
    if running:
        say(
            f"An earlier call was killed: waiting for {len(running)} of its jobs that still run "
            f"({', '.join(running)}). To end them: scancel {' '.join(running)}"
        )
    while jobs(results):
        time.sleep(_POLL_SECONDS)
    (results / FILE).unlink(missing_ok=True)


def cancel(results: Path) -> None:
    """Cancel all jobs of an interrupted call. Snakemake itself omits jobs that it submits or
    queries at that moment. Raises SlurmError."""
    if found := jobs(results):
        output_of("scancel", *found)


def output_of(*command: str) -> str:
    """Return the output of a SLURM command. Raises SlurmError."""
    try:
        done = programs.run(command, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        raise SlurmError(f"{command[0]}: {error}") from error
    if done.returncode:
        reason = done.stderr.strip() or f"ended with {done.returncode}"
        raise SlurmError(f"{' '.join(command)}: {reason}")
    return done.stdout


def nodes(cluster: Cluster) -> dict[str, str]:
    """Return the nodes of the cluster's or the default partition, in SLURM's order, with the reason
    why each cannot be measured now, "" if it can. Raises ConfigError if SLURM does not answer or
    has no node there."""
    try:
        listed = output_of("sinfo", "--noheader", "--Node", "--format=%N|%P|%T|%E")
    except SlurmError as error:
        raise ConfigError(
            f"config: nodes_named: SLURM does not say which there are: {error}"
        ) from None
    results: dict[str, str] = {}
    for line in listed.splitlines():
        name, partition, state, why = (*line.split("|", 3), *[""] * 3)[:4]
        is_ours = partition.rstrip("*") == cluster.partition
        if is_ours if cluster.partition else partition.endswith("*"):
            is_out = state.rstrip("*~#!%$@^-+") in _OUT_OF_SERVICE or _SILENT in state
            reason = f", {why}" if why not in ("", "none") else ""
            results[name] = f"SLURM says {state}{reason}" if is_out else ""
    if not results:
        where = f"partition {cluster.partition}" if cluster.partition else "the default partition"
        raise ConfigError(f"config: nodes_named: SLURM has no node in {where}")
    return results
