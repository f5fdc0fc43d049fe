"""Table of searches for the largest batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...cases.conditions import Key
from ..columns import Row
from ..table import Inputs, declared_table


def searched(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per search, with the memory at its largest batch.

    Memory is that of the fullest device, and that of all processes on the host together."""
    for result in inputs.searches:
        attempts, parameters = result.record["attempts"], result.record["parameters"]
        last = next(attempt for attempt in attempts if attempt["batch_per_device"] == result.batch)
        yield {
            **Key(result.case, result.conditions, unit="").row,
            "largest_batch": result.batch if result.status == "ok" else None,
            "status": result.status,
            "reason": result.reason,
            "attempts": len(attempts),
            **_memory(last),
            "multiple_of": parameters["multiple_of"],
            "at_most": parameters["at_most"],
        }


def _memory(attempt: Mapping[str, Any]) -> dict[str, float | None]:
    def gibibytes(key: str) -> float | None:
        value: float | None = attempt[key]
        return value and value / 2**30

    return {
        "device_memory_gib": gibibytes("peak_device_memory_bytes"),
        "host_memory_gib": gibibytes("peak_host_memory_bytes"),
        "memory_limit_gib": gibibytes("memory_limit_bytes"),
    }


LARGEST = declared_table("largest_batch", searched)
TABLES = (LARGEST,)
