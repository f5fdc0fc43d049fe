"""Searches for the largest batch as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ..records.searches import SUBJECT, Result
from .columns import frame

MEMORY = ("device_memory_gib", "host_memory_gib", "memory_limit_gib")
LARGEST_COLUMNS = (
    *SUBJECT,
    "largest_batch",
    "status",
    "reason",
    "attempts",
    *MEMORY,
    "multiple_of",
    "at_most",
)
ATTEMPT_COLUMNS = (
    *SUBJECT,
    "attempt",
    "batch_per_device",
    "status",
    *MEMORY,
    "seconds",
    "reason",
)


def tables(results: Iterable[Result]) -> dict[str, pd.DataFrame]:
    """``largest_batch``: a row for each search; ``largest_batch_attempts``: one for each batch that
    it tried. Memory of the device that held most, and of all processes on the host together."""
    searched: list[list[Any]] = []
    tried: list[list[Any]] = []
    for result in results:
        content = result.content
        attempts = content["attempts"]
        cells = result.cells
        last = next(one for one in attempts if one["batch_per_device"] == result.batch)
        batch = content["batch_per_device"]
        searched.append(
            [*cells, batch, result.status, result.reason, len(attempts), *_memory(last),
             content["multiple_of"], content["at_most"]]
        )  # fmt: skip
        for number, one in enumerate(attempts, 1):
            tried.append(
                [*cells, number, one["batch_per_device"], one["status"], *_memory(one),
                 one["seconds"], one["reason"]]
            )  # fmt: skip
    return {
        "largest_batch": frame(LARGEST_COLUMNS, searched),
        "largest_batch_attempts": frame(ATTEMPT_COLUMNS, tried),
    }


def _memory(attempt: Mapping[str, Any]) -> list[float | None]:
    keys = ("peak_device_memory_bytes", "peak_host_memory_bytes", "memory_limit_bytes")
    return [attempt[key] and attempt[key] / 2**30 for key in keys]
