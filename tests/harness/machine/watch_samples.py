"""Made-up samples of a watcher, and their summary."""

from __future__ import annotations

from typing import Any

from harness.telemetry import watcher

from ..validity import assert_valid

RUN_ID = "0" * 32


def watched_sources(gpus: int = 0) -> watcher.Sources:
    """Return the sources of a run on two cores, with so many GPUs."""
    created = watcher.Sources(RUN_ID, [0, 1], {}, gpus)
    created.gpus = [{"name": "Example GPU", "uuid": f"GPU-{index}"} for index in range(gpus)]
    created.memory_bytes = 2**30
    return created


def watch_sample(seconds: float, **values: Any) -> dict[str, Any]:
    """Return a sample at a time in seconds."""
    return {"seconds": seconds, **values}


def summarized(samples: list[dict[str, Any]], start: float, end: float, gpus: int = 0) -> Any:
    """Return the valid summary of samples for a timed region from ``start`` to ``end``."""
    actual = watcher.summarize(samples, 0.5, watched_sources(gpus), (start, end))
    assert_valid(actual, "watch")
    return actual
