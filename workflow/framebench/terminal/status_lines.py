"""Terminal lines of a call: results and logs of its jobs, what was verified, and its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from core import bounded
from core.text import clock, printable

from ..cases import names
from ..cases.conditions import THROUGHPUT
from ..files import json_files
from ..files.json_files import repeat_and_attempt
from ..records import verifications
from ..statistics.descriptive import median
from ..tables.formatting import rounded

#: Number of log lines of a failed run to show.
_LINES = 20
#: Number of bytes at the end of a log that are searched for these lines.
_BYTES = 2**18


class RunOutcome(NamedTuple):
    """Outcome of a run.
    ``status``, ``reason``: from the record; ``figure``, ``unit``: figure and unit of the first
    ``metric``, None without one; ``wall_seconds``: wall time of the process, None if unknown."""

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


def figures_in(folder: Path) -> list[float]:
    """Return the figures of a case's repeats, each of its latest attempt that has one."""
    found: dict[int, float] = {}
    paths = {
        named: path for path in folder.glob("*.json") if (named := repeat_and_attempt(path.stem))
    }
    for (repeat, _), path in sorted(paths.items()):
        figure = outcome_of(path).figure
        if figure is not None:
            found[repeat] = figure
    return [*found.values()]


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


def result(seconds: float, label: str, outcome: RunOutcome, repeats: Sequence[float] = ()) -> str:
    """Return a result line: ``4:31  pytorch  ResNet-50 training  fp32  6.82 images/s``.
    Status and reason replace a missing figure. ``repeats``: figures of all repeats so far."""
    if outcome.figure is None:
        status = "cannot" if outcome.status == "unsupported" else outcome.status
        what = ": ".join(filter(None, [status, " ".join(outcome.reason.split())]))
    else:
        name = "" if outcome.metric == THROUGHPUT else f"{outcome.metric} "
        what = f"{name}{rounded(outcome.figure, '.3g')} {outcome.unit}"
        if len(repeats) > 1:
            what += f"  ({_ordinal(len(repeats))}; median {rounded(median(repeats), '.3g')})"
    return "  ".join([clock(seconds), label, what])


def verified(paths: Iterable[Path]) -> str:
    """Return how many verifications passed, and which failed, by their new records; "" for none."""
    found = []
    for path in paths:
        try:
            found.append(verifications.read_result(path))
        except (OSError, ValueError):
            continue  # not printed: the report names the file
    counts = Counter(result.outcome for result in found)
    parts = [
        f"{counts[outcome]} {words}" for outcome, words in _OUTCOMES.items() if counts[outcome]
    ]
    failed = [
        f"{names.frameworks([result.case])[0]}, {names.workload(result.case)}, "
        f"{names.in_words(result.case.precision)}: {result.difference}"
        for result in found
        if result.outcome == verifications.DIFFERS
    ]
    text = f"Verified against the float64 reference: {', '.join(parts)}"
    return "; ".join([text, *failed]) if found else ""


def _ordinal(number: int) -> str:
    """Return a number like ``2nd``."""
    teens = 10 < number % 100 < 14
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
