"""Terminal lines of a call: results and logs of its jobs, what was verified, and its progress."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from core import bounded
from core.text import clock, printable

from ..cases.conditions import THROUGHPUT
from ..files import json_files
from ..records import verifications
from ..tables.formatting import figure

#: Number of log lines of a failed run to show.
_LINES = 20
#: Number of bytes at the end of a log to search for these lines.
_BYTES = 2**18


class RunOutcome(NamedTuple):
    """Outcome of a run.
    ``status``, ``reason``: from the record; ``figure``, ``unit``: of the first ``metric``, None
    without one; ``wall_seconds``: of the process, None if unknown."""

    status: str
    reason: str = ""
    figure: float | None = None
    unit: str = ""
    metric: str = ""
    wall_seconds: float | None = None


def outcome_of(path: Path) -> RunOutcome:
    """Return the outcome in a job's new record.
    The record is not validated here: the tables do so when no benchmark runs."""
    try:
        record = json_files.read(path)
        metrics: dict[str, dict[str, Any]] = record["metrics"]
        name = next(iter(metrics), "")
        first = metrics.get(name, {})
        return RunOutcome(
            record["status"],
            record["reason"],
            first.get("value"),
            first.get("unit", ""),
            name,
            record["wall_seconds"],
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return RunOutcome("failed", f"{path} cannot be read: {error}")


def end_of_log(path: Path) -> list[str]:
    """Return the last lines of a job's log and its path."""
    try:
        lines = bounded.read_end(path, _BYTES).split("\n")
    except OSError:
        return []
    said = [line.rstrip() for line in lines if line.strip()]
    return [*(f"    {printable(line)}" for line in said[-_LINES:]), f"    log: {path}"]


#: Outcomes of verifications in words.
_OUTCOMES = {
    verifications.PASSED: "passed",
    verifications.DIFFERS: "failed",
    verifications.PARTLY: "partly in another precision",
    verifications.NOT_MADE: "could not be made",
    verifications.UNSUPPORTED: "not supported",
}


def result(seconds: float, title: str, outcome: RunOutcome) -> str:
    """Return a result line: ``4:31  pytorch  ResNet-50 training  fp32  repeat 1  6.82 images/s``.
    Status and reason replace a missing figure."""
    if outcome.figure is None:
        status = "cannot" if outcome.status == "unsupported" else outcome.status
        what = ": ".join(filter(None, [status, " ".join(outcome.reason.split())]))
    else:
        name = "" if outcome.metric == THROUGHPUT else f"{outcome.metric} "
        what = f"{name}{figure(outcome.figure)} {outcome.unit}"
    return "  ".join([clock(seconds), title, what])


def verified(paths: Iterable[Path]) -> str:
    """Return how many verifications passed and failed, by their new records; "" for none."""
    counts: Counter[str] = Counter()
    for path in paths:
        with contextlib.suppress(OSError, ValueError):  # the report names the file
            counts[verifications.read_result(path).outcome] += 1
    parts = [
        f"{counts[outcome]} {words}" for outcome, words in _OUTCOMES.items() if counts[outcome]
    ]
    return f"Verified against the float64 reference: {', '.join(parts)}" if parts else ""
