"""Sidecar files next to the records: calls that measured, runs that left no record, and expected
cases.

``calls.csv`` and ``interruptions.csv`` in the results grow by appended rows. A record has the
command of its run, but not of the call. ``expected.json`` has the cases of the suites that are
measured into the results, with or without records, and so shows when a suite is incomplete.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from core import bounded
from core.case import Case
from core.text import printable

from ..cases.conditions import Conditions
from ..files import json_files
from ..files.json_files import Problem, cause
from ..files.whole_files import write_whole

EXPECTED = "expected.json"
#: Beginning of the reason why a case is left out of a time budget.
TOO_SLOW = "too slow for "

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


def note_interruptions(log: str, results: Path) -> None:
    """Append the interrupted runs in the text of Snakemake's log. Raises OSError.

    The file may name a run twice.
    """
    # Some jobs of a failed group may have finished.
    begun = dict.fromkeys(_interrupted_runs(log, results))
    runs = results / "runs"
    append(results, [entry for entry in begun if not (runs / f"{entry.run}.json").exists()])


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
    statuses, noticed = {ended["job"]: ended["status"] for ended in _STATUS.finditer(log)}, _now()
    # A record's name has neither blanks nor commas; the folder of the results may have both.
    run = re.compile(rf"^ +output: {re.escape(str(results))}/runs/([^\s,]+)\.json", re.MULTILINE)
    for failed in _FAILED.finditer(log):
        job = "".join(_JOB.findall(failed["lines"])[:1])
        for name in run.findall(failed["lines"]):
            yield Interruption(noticed, name, job, statuses.get(job, ""))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class ExpectedCase:
    """A case of a suite.

    ``folder``: folder of its records below ``runs``; "" while its batch is searched.
    ``is_budgeted``: whether a time budget decides its repeats, by the order of the frameworks.
    ``left_out``: why the plan leaves the case out; "" for a case that is to be measured.
    """

    suite: str
    folder: str
    case: Case
    conditions: Conditions
    is_budgeted: bool = False
    left_out: str = ""


def write_expected(
    results: Path, suite: str, cases: Iterable[ExpectedCase], is_whole: bool
) -> None:
    """Replace the expected cases of a suite if ``cases`` are the whole suite, else add to them.
    Raises OSError."""
    known, _ = load_expected(results)
    others = [case for case in known if case.suite != suite]
    own = [case for case in known if case.suite == suite and (case.folder or case.left_out)]
    asked = cases if is_whole else [*own, *cases]
    kept = {case.folder or (case.case, case.conditions): case for case in asked}
    written = [
        {**vars(case), "case": case.case._asdict(), "conditions": asdict(case.conditions)}
        for case in (*others, *kept.values())
    ]
    text = json.dumps({"cases": written}, indent=1)
    path = results / EXPECTED
    if not (path.is_file() and bounded.read_bytes(path) == f"{text}\n".encode()):
        write_whole(path, f"{text}\n")


def load_expected(results: Path) -> tuple[list[ExpectedCase], list[Problem]]:
    """Return all expected cases, and problems with the file; both empty without a file."""
    path = results / EXPECTED
    if not path.is_file():
        return [], []
    try:
        return [_expected_case(entry) for entry in json_files.read(path)["cases"]], []
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return [], [Problem(EXPECTED, f"{cause(error)}; the next call of the suite writes it anew")]


def _expected_case(found: Any) -> ExpectedCase:
    case, conditions = Case.from_json(found["case"]), Conditions(**found["conditions"])
    expected = ExpectedCase(**{**found, "case": case, "conditions": conditions})
    hash(expected)  # raises TypeError for a list, which is not a valid value
    return expected
