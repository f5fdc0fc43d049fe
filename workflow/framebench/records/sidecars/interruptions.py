"""Runs that ended without a record, with the reason that Snakemake or the scheduler states.

Kept in ``interruptions.csv`` in the results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..run import Problem
from . import noted

FILE = "interruptions.csv"

#: A failed job in Snakemake's log: its rule, then indented lines.
_FAILED = re.compile(r"^Error in (?:rule|checkpoint) \S+:\n(?P<lines>(?:  +.*\n)*)", re.MULTILINE)
#: Failed jobs that shared a SLURM job, whose number is only in the name of its log.
_GROUP = re.compile(
    r"^ +message: Error in group .*\n +log: .*/(?P<job>\d+)\.log(?: .*)?\n +jobs:\n"
    r"(?P<lines>(?: {8,}.*\n)*)",
    re.MULTILINE,
)
_JOB = re.compile(r"^ +external_jobid: (\d+)", re.MULTILINE)
_STATUS = re.compile(r"SLURM-job '(?P<job>\d+)' failed\b.*?SLURM status is: '(?P<status>\w+)'")


class Interruption(NamedTuple):
    """A run that started and left no record.

    ``noticed``: UTC, ISO 8601; ``run``: path of its record below ``runs``, without ``.json``;
    ``job``, ``status``: of SLURM, "" if unknown.
    """

    noticed: str
    run: str
    job: str
    status: str


def interrupted_runs(log: str, results: Path, noticed: str) -> Iterator[Interruption]:
    """Yield the interrupted runs in the text of Snakemake's log."""
    statuses = {match["job"]: match["status"] for match in _STATUS.finditer(log)}
    # A record's name has neither blanks nor commas; the folder of the results may have both.
    run = re.compile(rf"^ +output: {re.escape(str(results))}/runs/([^\s,]+)\.json", re.MULTILINE)
    for failed in (*_FAILED.finditer(log), *_GROUP.finditer(log)):
        job = failed.groupdict().get("job") or "".join(_JOB.findall(failed["lines"])[:1])
        for name in run.findall(failed["lines"]):
            yield Interruption(noticed, name, job, statuses.get(job, ""))


def note(log: str, results: Path) -> list[Interruption]:
    """Append the interrupted runs in the text of Snakemake's log, and return them.

    The file may name a run twice.
    """
    # Some jobs of a failed group may have finished.
    begun = dict.fromkeys(interrupted_runs(log, results, noted.now()))
    new = [
        interruption
        for interruption in begun
        if not (results / "runs" / f"{interruption.run}.json").exists()
    ]
    if new:
        noted.append(results / FILE, Interruption._fields, new)
    return new


def load(results: Path) -> tuple[list[Interruption], list[Problem]]:
    """Return all interruptions, and invalid lines."""
    rows, problems = noted.read(results / FILE, Interruption._fields)
    return [Interruption(*row) for row in rows], problems
