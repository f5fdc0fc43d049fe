"""Phases of a run's wall time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class RunPhases(NamedTuple):
    """Seconds of a run's phases, on the rank with the longest timed region.

    ``first_step`` includes compilation; ``warm_up`` excludes the first step; ``window`` is the
    timed region, with that of the waited-for steps; ``other`` is the rest of the wall time: process
    start, checks, collectives, step breakdown, end.
    """

    imports: float
    build: float
    first_step: float
    warm_up: float
    window: float
    other: float


def phases_of(record: Mapping[str, Any], rank: Mapping[str, Any]) -> RunPhases | None:
    """Return the phases of a run; None if the record lacks one."""
    phases, warming = rank.get("phases", {}), rank.get("warmup_step_seconds")
    names = ("import_seconds", "build_seconds", "warmup_seconds", "window_seconds")
    seconds = [*map(phases.get, names), phases.get("waited_window_seconds", 0.0)]
    if not warming or not all(isinstance(entry, (int, float)) for entry in seconds):
        return None
    imports, build, warm_up, window, waited = map(float, seconds)
    window += waited
    first = float(warming[0])
    known = imports + build + warm_up + window
    return RunPhases(
        imports, build, first, max(0.0, warm_up - first), window,
        max(0.0, float(record["wall_seconds"]) - known),
    )  # fmt: skip
