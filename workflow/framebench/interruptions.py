"""Runs that ended without a record, and why, as far as Snakemake and the scheduler tell: a killed
process leaves no record that could say so itself. Kept in ``interruptions.csv`` in the results."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

FILE = "interruptions.csv"

#: A failed job in Snakemake's log: its rule, then indented lines.
_FAILED = re.compile(r"^Error in (?:rule|checkpoint) \S+:\n(?P<lines>(?:  +.*\n)*)", re.MULTILINE)
_LINE = re.compile(r"^ +(\w+): (.*)$", re.MULTILINE)
_STATUS = re.compile(r"SLURM-job '?(?P<job>\d+)'? failed, SLURM status is: '?(?P<status>\w+)'?")


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
    beginning = f"{results}/runs/"
    for failed in _FAILED.finditer(log):
        told = dict(_LINE.findall(failed["lines"]))
        output = told.get("output", "").split(",")[0].split(" (")[0].strip()
        job = told.get("external_jobid", "")
        if output.startswith(beginning):
            run = output.removeprefix(beginning).removesuffix(".json")
            yield Interruption(noticed, run, job, statuses.get(job, ""))


def note(log: str, results: Path) -> list[Interruption]:
    """Add those in the text of Snakemake's log to the results' file, which may name a run twice."""
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    # Of a group of jobs that failed together, some may have finished.
    begun = dict.fromkeys(found(log, results, now))
    new = [one for one in begun if not (results / "runs" / f"{one.run}.json").exists()]
    path = results / FILE
    if new:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            if is_new:
                writer.writerow(Interruption._fields)
            writer.writerows(new)
    return new


def load(results: Path) -> list[Interruption]:
    """All that were noted; lines that are none are left out."""
    try:
        with (results / FILE).open(newline="") as file:
            rows: Iterable[list[str]] = list(csv.reader(file))[1:]
    except FileNotFoundError:
        return []
    return [Interruption(*row) for row in rows if len(row) == len(Interruption._fields)]
