"""Framework of numpy without models, and tolerances of times."""

from __future__ import annotations

from typing import Any

#: Options that a benchmark without a model lacks.
BARE: dict[str, Any] = {"model": None, "batch_per_device": None, "compiler": None}
#: Options that a benchmark without a framework lacks.
WITHOUT_FRAMEWORK: dict[str, Any] = {**BARE, "framework": None, "precision": None}
QUICK = {"blocks": 2, "block_seconds": 0.02}
#: Tolerance of times on the toy's exact clock, which takes time to read.
TICKS = 0.01


def values(record: Any, quantity: str) -> dict[Any, float]:
    """Return the values by the only coordinate of their points."""
    named = [metric for metric in record["metrics"].values() if metric.get("quantity") == quantity]
    return {tuple(entry["at"].values()): entry["value"] for entry in named}


LATE = "synchronize() returned before the work was complete"
