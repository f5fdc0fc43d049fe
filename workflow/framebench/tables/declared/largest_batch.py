"""Searches for the largest batch: what each gave, and what it tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...records.searches import SUBJECT
from ..columns import COUNT, NUMBER, WHOLE, Column, shared
from ..table import Drawing, Inputs, Table


def searched(inputs: Inputs) -> Iterator[list[Any]]:
    """A row for each search, with the memory at the batch that it gave: of the device that held
    most, and of all processes on the host together."""
    for result in inputs.searches:
        attempts = result.attempts
        last = next(one for one in attempts if one["batch_per_device"] == result.batch)
        yield [
            *result.cells,
            result.largest,
            result.status,
            result.reason,
            len(attempts),
            *_memory(last),
            result.parameters["multiple_of"],
            result.parameters["at_most"],
        ]


def tried(inputs: Inputs) -> Iterator[list[Any]]:
    """A row for each batch that a search tried, in the order of the tries."""
    for result in inputs.searches:
        for number, one in enumerate(result.attempts, 1):
            yield [
                *result.cells,
                number,
                one["batch_per_device"],
                one["status"],
                *_memory(one),
                one["seconds"],
                one["reason"],
            ]


def _memory(attempt: Mapping[str, Any]) -> list[float | None]:
    keys = ("peak_device_memory_bytes", "peak_host_memory_bytes", "memory_limit_bytes")
    return [attempt[key] and attempt[key] / 2**30 for key in keys]


# Of a CPU there is no device's memory.
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
    drawings=(Drawing("memory"),),
    heading="Largest batch",
    answers=("attempt", "batch_per_device", "status"),
)
TABLES = (LARGEST, TRIED)
