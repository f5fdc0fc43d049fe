"""Step breakdown of a training step, from a rank's record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...statistics.descriptive import median

PARTS = ("forward", "backward", "all_reduce", "optimizer")


@dataclass(frozen=True, slots=True)
class StepParts:
    """Step breakdown.

    ``seconds``: medians over ``steps`` by part, in the order of a step; parts that a framework
    fuses are joined by ``+``. Differences below the clock's resolution may be negative. ``how``:
    how each part was timed. ``reason``: why there is no breakdown. ``forward_ends``: what ends the
    forward pass, "" if unknown.
    """

    seconds: tuple[tuple[str, float], ...] = ()
    steps: int = 0
    how: str = ""
    reason: str = ""
    forward_ends: str = ""


def step_parts_of(rank: Mapping[str, Any]) -> StepParts | None:
    """Return the step breakdown of a rank; None if it was not requested.

    1. A part's time is its median over the steps.
    2. A part that was timed together with earlier parts is their difference.

    Raises ValueError for parts that contradict each other.
    """
    breakdown = rank.get("step_breakdown")
    if breakdown is None:
        return None
    if breakdown["reason"] or not breakdown["parts"]:
        return StepParts(reason=breakdown["reason"] or "the framework told of no parts")
    seconds: dict[str, float] = {}
    how: list[str] = []
    for entry in breakdown["parts"]:
        name, contained = entry["part"], entry["contains"]
        if not entry["seconds"] or not set(contained) <= set(seconds) or name in seconds:
            raise ValueError(f"holds a step breakdown whose part {name} is not one of a step")
        seconds[name] = median(entry["seconds"]) - sum(seconds[other] for other in contained)
        how.append(f"{name} {_less(contained)}")
    steps = min(len(entry["seconds"]) for entry in breakdown["parts"])
    ends = next((str(part["ends"]) for part in breakdown["parts"] if part.get("ends")), "")
    return StepParts(tuple(seconds.items()), steps, "; ".join(how), forward_ends=ends)


def _less(contained: list[str]) -> str:
    if not contained:
        return "alone"
    return f"as a pass until its end, less {', '.join(contained)}"
