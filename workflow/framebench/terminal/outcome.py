"""Outcome of a job, read from its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from core import bounded
from core.text import printable

from ..files import json_files
from ..files.attempt_names import repeat_and_attempt

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
