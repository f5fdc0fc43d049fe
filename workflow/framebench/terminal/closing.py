"""Closing lines of a call in which runs failed or are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ..config.statuses import FAILURES, OK
from ..plan.job import Job, count_of
from .status_lines import RunOutcome

#: Statuses of a measured run: a missing feature of a framework is a result.
AS_EXPECTED = (OK, "unsupported")
#: Largest number of runs to list; the report lists all.
_MOST = 3


def is_failure(status: str) -> bool:
    """Return whether a run with this status makes the call end with 1."""
    return status not in ("", *AS_EXPECTED)


def failed(runs: Sequence[Job]) -> list[Job]:
    """Return the runs that make the call end with 1: failures, or all runs if all are unsupported,
    for example because no framework can use the driver."""
    is_futile = {run.status for run in runs} == {"unsupported"}
    return [run for run in runs if is_futile or is_failure(run.status)]


def failures(ended: Mapping[str, RunOutcome], runs: int) -> list[str]:
    """Name the runs that failed, of all ``runs`` of the suite. ``ended``: outcome by label."""
    named = [
        f"  {_one_line(f'{label}: {outcome.status}: {outcome.reason}')}"
        for label, outcome in ended.items()
    ]
    more = len(named) - _MOST
    statuses = [outcome.status for outcome in ended.values()]
    return [
        f"Not measured: {len(ended)} of {count_of(runs, 'run')} ({_counted(statuses)})",
        *named[:_MOST],
        *([f"  and {more} more, see the report"] if more > 0 else []),
        "These runs count as done. To repeat them, add --config retry="
        + ",".join(dict.fromkeys(statuses)),
    ]


def unfinished(
    statuses: Sequence[str], searches: int, interrupted: Sequence[str], command: str, report: str
) -> list[str]:
    """Say in three lines what was measured, what is missing and which command goes on.

    ``statuses``: of every run of the suite, "" for runs without a record; ``searches``: number of
    unfinished searches for the largest batch; ``interrupted``: labels of runs that left no record;
    ``command``: this call, quoted for a shell; ``report``: its path, "" without one.
    """
    done = [status for status in statuses if status]
    failed = _counted(status for status in done if is_failure(status))
    where = f"; tables and report hold them: {report}" if report and done else ""
    missing = {"run": len(statuses) - len(done), "search": searches}
    counts = [count_of(number, kind) for kind, number in missing.items() if number]
    begun = ", ".join(map(_one_line, interrupted[:_MOST]))
    begun += f" and {len(interrupted) - _MOST} more" if len(interrupted) > _MOST else ""
    return [
        f"Measured: {len(done)} of {count_of(len(statuses), 'run')}"
        + (f" ({failed})" if failed else "")
        + where,
        f"Missing: {', '.join(counts) or 'no run, but checks or tables'}"
        + (f"; interrupted: {begun}" if begun else ""),
        f"To go on: {command}",
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _counted(statuses: Iterable[str]) -> str:
    """Return counts as text: ``2 failed, 1 timed out``."""
    counts = Counter(statuses)
    return ", ".join(
        f"{counts[name]} {failure.phrase}" for name, failure in FAILURES.items() if counts[name]
    )
