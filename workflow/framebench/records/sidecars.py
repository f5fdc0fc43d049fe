"""Sidecar files next to the records: calls that measured, and runs that left no record.

``calls.csv`` and ``interruptions.csv`` in the results grow by appended rows. A record knows the
command of its run only.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypeVar

from core.text import printable

#: A failed job in Snakemake's log, or all of a failed group: rule, then indented lines.
_FAILED = re.compile(r"^ *Error in (?:rule|checkpoint) \S+:\n(?P<lines>(?:  +.*\n)*)", re.MULTILINE)
_JOB = re.compile(r"^ +external_jobid: (\d+)", re.MULTILINE)
_STATUS = re.compile(r"SLURM-job '(?P<job>\d+)' failed\b.*?SLURM status is: '(?P<status>\w+)'")


class CallEntry(NamedTuple):
    """One measuring call. ``started``: UTC, ISO 8601; ``suite``: its name; ``command``: the command
    line, quoted for a shell."""

    started: str
    suite: str
    command: str


class Interruption(NamedTuple):
    """A run that started and left no record, with the reason that Snakemake or SLURM states.

    ``noticed``: UTC, ISO 8601; ``run``: path of its record below ``runs``, without ``.json``;
    ``job``, ``status``: job and status of SLURM, "" if unknown, as for runs that shared a job.
    """

    noticed: str
    run: str
    job: str
    status: str


Entry = TypeVar("Entry", CallEntry, Interruption)
#: File of each kind of entry.
FILES: dict[type, str] = {CallEntry: "calls.csv", Interruption: "interruptions.csv"}


def note_call(results: Path, suite: str, command: str) -> None:
    """Append a call that has just started. Raises OSError."""
    append(results, [CallEntry(_now(), suite, command)])


def note_interruptions(log: str, results: Path) -> list[Interruption]:
    """Append the interrupted runs in the text of Snakemake's log, and return them. Raises OSError.

    The file may name a run twice.
    """
    # Some jobs of a failed group may have finished.
    begun = dict.fromkeys(_interrupted_runs(log, results))
    new = [entry for entry in begun if not (results / "runs" / f"{entry.run}.json").exists()]
    append(results, new)
    return new


def append(results: Path, entries: Sequence[Entry]) -> None:
    """Append entries of one kind to their file, after a header if it is new. Raises OSError."""
    if not entries:
        return
    path = results / FILES[type(entries[0])]
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(entries[0]._fields)
        writer.writerows(entries)


def load(results: Path, kind: type[Entry]) -> list[Entry]:
    """Return all entries of a kind; [] without a file. Lines with other columns are left out."""
    path = results / FILES[kind]
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    rows = csv.reader(io.StringIO(printable(text), newline=""))
    entries = [kind(*row) for row in rows if len(row) == len(kind._fields)]
    return [entry for entry in entries if entry != kind._fields]


def _interrupted_runs(log: str, results: Path) -> Iterator[Interruption]:
    """Yield the interrupted runs in the text of Snakemake's log."""
    statuses, noticed = {one["job"]: one["status"] for one in _STATUS.finditer(log)}, _now()
    # A record's name has neither blanks nor commas; the folder of the results may have both.
    run = re.compile(rf"^ +output: {re.escape(str(results))}/runs/([^\s,]+)\.json", re.MULTILINE)
    for failed in _FAILED.finditer(log):
        job = "".join(_JOB.findall(failed["lines"])[:1])
        for name in run.findall(failed["lines"]):
            yield Interruption(noticed, name, job, statuses.get(job, ""))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
