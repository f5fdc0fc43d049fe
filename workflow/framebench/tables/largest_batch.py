"""Searches for the largest batch as tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from ..records.searches import CASE, PLACE, Result

MEMORY = ("device_memory_gib", "host_memory_gib", "memory_limit_gib")
LARGEST_COLUMNS = (
    *CASE,
    *PLACE,
    "largest_batch",
    "status",
    "reason",
    "attempts",
    *MEMORY,
    "multiple_of",
    "at_most",
)
ATTEMPT_COLUMNS = (
    *CASE,
    *PLACE,
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
    import pandas as pd

    searched: list[list[Any]] = []
    tried: list[list[Any]] = []
    for result in results:
        content = result.content
        attempts = content["attempts"]
        labels = [result.labels[name] for name in (*CASE, *PLACE)]
        last = next(one for one in attempts if one["batch_per_device"] == result.batch)
        batch = content["batch_per_device"]
        searched.append(
            [*labels, batch, result.status, result.reason, len(attempts), *_memory(last),
             content["multiple_of"], content["at_most"]]
        )  # fmt: skip
        for number, one in enumerate(attempts, 1):
            tried.append(
                [*labels, number, one["batch_per_device"], one["status"], *_memory(one),
                 one["seconds"], one["reason"]]
            )  # fmt: skip
    return {
        "largest_batch": _frame(pd, LARGEST_COLUMNS, searched),
        "largest_batch_attempts": _frame(pd, ATTEMPT_COLUMNS, tried),
    }


def _memory(attempt: Mapping[str, Any]) -> list[float | None]:
    keys = ("peak_device_memory_bytes", "peak_host_memory_bytes", "memory_limit_bytes")
    return [attempt[key] and attempt[key] / 2**30 for key in keys]


def _frame(pd: Any, columns: tuple[str, ...], rows: list[list[Any]]) -> Any:
    """A frame with the same types whether it has rows or not."""
    kinds = {"Int64": ("nodes", "devices_per_node",
                       "largest_batch", "attempts", "multiple_of", "at_most", "attempt",
                       "batch_per_device"),
             "float64": (*MEMORY, "seconds")}  # fmt: skip
    types = {name: kind for kind, names in kinds.items() for name in names if name in columns}
    made = pd.DataFrame(rows, columns=list(columns), dtype=object)
    return made.astype({name: types.get(name, "str") for name in columns})
