"""Where the wall time of a run went, by what its record says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class RunPhases(NamedTuple):
    """Seconds, of the rank whose window was the longest. ``first_step`` compiles, where something
    is compiled; ``warm_up`` is the rest of it; ``window`` is that of the throughput and, where
    there is one, that of the steps that are waited for; ``other`` is what is left of the wall time:
    starting processes, checks, collectives, the split of a step, the end."""

    imports: float
    build: float
    first_step: float
    warm_up: float
    window: float
    other: float


def phases_of(record: Mapping[str, Any], rank: Mapping[str, Any]) -> RunPhases | None:
    """None where the record does not tell all of them."""
    told, warming = rank.get("phases", {}), rank.get("warmup_step_seconds")
    names = ("import_seconds", "build_seconds", "warmup_seconds", "window_seconds")
    seconds = [*map(told.get, names), told.get("waited_window_seconds", 0.0)]
    if not warming or not all(isinstance(one, (int, float)) for one in seconds):
        return None
    imports, build, warm_up, window, waited = map(float, seconds)
    window += waited
    first = float(warming[0])
    known = imports + build + warm_up + window
    return RunPhases(
        imports, build, first, max(0.0, warm_up - first), window,
        max(0.0, float(record["wall_seconds"]) - known),
    )  # fmt: skip
