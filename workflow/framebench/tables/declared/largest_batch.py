"""Tables of searches for the largest batch: results and attempts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...records.searches import SUBJECT
from ..columns import COUNT, NUMBER, WHOLE, Column, Row, shared
from ..table import Inputs, Table


def searched(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per search, with the memory at its largest batch.

    Memory is that of the fullest device, and that of all processes on the host together."""
    for result in inputs.searches:
        attempts = result.attempts
        last = next(attempt for attempt in attempts if attempt["batch_per_device"] == result.batch)
        yield {
            **result.row,
            "largest_batch": result.largest,
            "status": result.status,
            "reason": result.reason,
            "attempts": len(attempts),
            **_memory(last),
            "multiple_of": result.parameters["multiple_of"],
            "at_most": result.parameters["at_most"],
        }


def tried(inputs: Inputs) -> Iterator[Row]:
    """Yield a row per batch that a search tried, in order."""
    for result in inputs.searches:
        for number, attempt in enumerate(result.attempts, 1):
            yield {
                **result.row,
                "attempt": number,
                "batch_per_device": attempt["batch_per_device"],
                "status": attempt["status"],
                **_memory(attempt),
                "seconds": attempt["seconds"],
                "reason": attempt["reason"],
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


# CPUs have no device memory.
_MEMORY = (
    Column(
        "device_memory_gib", NUMBER, "held by the fullest device", "GiB", title="device GiB",
        optional=True,
    ),
    Column(
        "host_memory_gib", NUMBER, "held by all processes on the host together", "GiB",
        title="host GiB", optional=True,
    ),
    Column(
        "memory_limit_gib", NUMBER, "what they may hold", "GiB", title="limit GiB", optional=True
    ),
)  # fmt: skip
LARGEST = Table(
    name="largest_batch",
    title="Largest batch per device",
    explanation="The largest batch per device that fits, in steps of multiple_of, up to at_most. "
    "Memory is the most that the fullest device, and all processes on the host together, held "
    "while this batch was tried.",
    columns=(
        *shared(*SUBJECT),
        Column("largest_batch", COUNT, "largest batch per device that fits", "samples"),
        *shared("status", "reason"),
        Column("attempts", WHOLE, "batches that were tried"),
        *_MEMORY,
        Column("multiple_of", WHOLE, "step of the search", "samples"),
        Column("at_most", WHOLE, "bound of the search", "samples"),
    ),
    rows=searched,
    group="Memory",
    heading="Largest batch",
    answers=("largest_batch", "status"),
    order="largest_batch",
)
TRIED = Table(
    name="largest_batch_attempts",
    title="Batches tried on the way to the largest",
    explanation="In the order of the tries, fresh processes each: doubled until one did not fit, "
    "then halved in between. Memory that nobody knows is missing.",
    columns=(
        *shared(*SUBJECT),
        Column("attempt", WHOLE, "number of the try"),
        *shared("batch_per_device", "status"),
        *_MEMORY,
        Column("seconds", NUMBER, "wall time of the try", "s"),
        *shared("reason"),
    ),
    rows=tried,
    group="Memory",
    heading="Largest batch",
    answers=("attempt", "batch_per_device", "status"),
)
TABLES = (LARGEST, TRIED)
