"""Closing lines of a call in which runs failed or are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..config.statuses import FAILURES, OK
from ..plan.job import count_of

#: Statuses of a measured run: a missing feature of a framework is a result.
AS_EXPECTED = (OK, "unsupported")


def is_failure(status: str) -> bool:
    """Return whether a run with this status makes the call end with 1."""
    return status not in ("", *AS_EXPECTED)


def failed(statuses: Sequence[str]) -> list[str]:
    """Return the statuses of runs that make the call end with 1: failures, or all if all runs
    are unsupported, for example because no framework can use the driver."""
    is_futile = {*statuses} == {"unsupported"}
    return [status for status in statuses if is_futile or is_failure(status)]


def failures(failed: Sequence[str], runs: int) -> list[str]:
    """Return lines on the statuses of failed runs, of all ``runs`` of the suite."""
    return [
        f"Not measured: {len(failed)} of {count_of(runs, 'run')} ({_counted(failed)}), "
        "see the report",
        "These runs count as done. To repeat them, add --config retry="
        + ",".join(dict.fromkeys(failed)),
    ]


def unfinished(statuses: Sequence[str], searches: int, command: str, report: str) -> list[str]:
    """Return three lines: what was measured, what is missing, and the command that continues.

    ``statuses``: statuses of every run of the suite, "" for runs without a record; ``searches``:
    number of unfinished searches for the largest batch; ``command``: this call, quoted for a shell;
    ``report``: its path, "" without one.
    """
    done = [status for status in statuses if status]
    failed = _counted(status for status in done if is_failure(status))
    where = f"; tables and report hold them: {report}" if report and done else ""
    missing = {"run": len(statuses) - len(done), "search": searches}
    counts = [count_of(number, kind) for kind, number in missing.items() if number]
    return [
        f"Measured: {len(done)} of {count_of(len(statuses), 'run')}"
        + (f" ({failed})" if failed else "")
        + where,
        f"Missing: {', '.join(counts) or 'no run, but checks or tables'}",
        f"To go on: {command}",
    ]


def _counted(statuses: Iterable[str]) -> str:
    """Return counts as text: ``2 failed, 1 timed out``."""
    counts = Counter(statuses)
    return ", ".join(
        f"{counts[name]} {failure.words}" for name, failure in FAILURES.items() if counts[name]
    )
