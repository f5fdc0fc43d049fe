"""Made-up samples of a watcher, and their summary."""

from __future__ import annotations

from typing import Any

from harness.telemetry import watcher

from ..validity import assert_valid


def watch_sample(seconds: float, **values: Any) -> dict[str, Any]:
    """Return a sample at a time in seconds."""
    return {"seconds": seconds, **values}


def summarized(samples: list[dict[str, Any]], start: float, end: float, gpus: int = 0) -> Any:
    """Return the valid summary of samples for a timed region from ``start`` to ``end``, of a run on
    two cores and so many GPUs."""
    watching = watcher.Watcher([0, 1], {}, gpus)
    watching.gpus = [{"name": "Example GPU", "uuid": f"GPU-{index}"} for index in range(gpus)]
    watching.samples, watching.memory_bytes = samples, 2**30
    actual = watcher.summarize(watching, (start, end))
    assert_valid(actual, "watch")
    return actual
