"""A framework of NumPy without models, and ways to be late."""

from __future__ import annotations

from typing import Any

#: What a kind without a model has none of.
BARE: dict[str, Any] = {"model": None, "batch_per_device": None, "compiler": None}
QUICK = {"blocks": 2, "block_seconds": 0.02}
#: What a device that sleeps through its operations may take longer for each, on a busy machine.
LATER = 0.7


def values(record: Any, quantity: str) -> dict[Any, float]:
    """By the only coordinate of their points."""
    named = [one for one in record["metrics"].values() if one.get("quantity") == quantity]
    return {tuple(one["at"].values()): one["value"] for one in named}


LATE = "synchronize() returned before the work was complete"
