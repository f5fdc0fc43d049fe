"""Runs that ended without a record, and why, as far as Snakemake and the scheduler tell: a killed
process leaves no record that could say so itself. Kept in ``interruptions.csv`` in the results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..run import Problem
from . import noted

FILE = "interruptions.csv"

#: A failed job in Snakemake's log: its rule, then indented lines.
_FAILED = re.compile(r"^Error in (?:rule|checkpoint) \S+:\n(?P<lines>(?:  +.*\n)*)", re.MULTILINE)
#: Failed jobs that shared one of SLURM's, whose number is told by the name of its log only.
_GROUP = re.compile(
    r"^ +message: Error in group .*\n +log: .*/(?P<job>\d+)\.log(?: .*)?\n +jobs:\n"
    r"(?P<lines>(?: {8,}.*\n)*)",
    re.MULTILINE,
)
_JOB = re.compile(r"^ +external_jobid: (\d+)", re.MULTILINE)
_STATUS = re.compile(r"SLURM-job '(?P<job>\d+)' failed\b.*?SLURM status is: '(?P<status>\w+)'")


class Interruption(NamedTuple):
    """One run that was begun and left no record. ``noticed``: UTC, ISO 8601; ``run``: its record's
    path below the results' ``runs``, without ``.json``; ``job`` and ``status``: SLURM's, "" where
    it was not SLURM's or SLURM does not tell."""

    noticed: str
    run: str
    job: str
    status: str


def found(log: str, results: Path, noticed: str) -> Iterator[Interruption]:
    """Those in the text of Snakemake's log."""
    statuses = {one["job"]: one["status"] for one in _STATUS.finditer(log)}
    # A record's name has neither blanks nor commas; the folder of the results may have both.
    run = re.compile(rf"^ +output: {re.escape(str(results))}/runs/([^\s,]+)\.json", re.MULTILINE)
    for failed in (*_FAILED.finditer(log), *_GROUP.finditer(log)):
        job = failed.groupdict().get("job") or "".join(_JOB.findall(failed["lines"])[:1])
        for name in run.findall(failed["lines"]):
            yield Interruption(noticed, name, job, statuses.get(job, ""))


def note(
    log: str, results: Path, states: Callable[[Iterable[str]], Mapping[str, str]] | None = None
) -> list[Interruption]:
    """Add those in the text of Snakemake's log to the results' file, which may name a run twice.
    ``states`` asks SLURM about jobs, by number, of which the log does not say how they ended."""
    # Of a group of jobs that failed together, some may have finished.
    begun = dict.fromkeys(found(log, results, noted.now()))
    new = [one for one in begun if not (results / "runs" / f"{one.run}.json").exists()]
    untold = {one.job for one in new if one.job and not one.status}
    if states and untold:
        ended = states(sorted(untold))
        new = [one._replace(status=one.status or ended.get(one.job, "")) for one in new]
    if new:
        noted.append(results / FILE, Interruption._fields, new)
    return new


def load(results: Path) -> tuple[list[Interruption], list[Problem]]:
    """All that were noted, and lines that are none."""
    rows, problems = noted.read(results / FILE, Interruption._fields)
    return [Interruption(*row) for row in rows], problems
