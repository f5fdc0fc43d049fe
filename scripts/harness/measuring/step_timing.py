"""Break down the time of a training step into its parts, after the timed region.

Nothing is added to steps in the timed region. Afterwards a few more steps run part by part, each
synchronized. They take a little longer than timed steps, where parts overlap.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List

from harness.adapter import StepBreakdown, Unsupported, require
from harness.measuring import extras
from harness.messages.report import Report

#: Largest part of the run's time so far that these steps may take.
SHARE = 0.1


def measure(adapter: StepBreakdown, steps: int, seconds: float) -> List[Dict[str, Any]]:
    """Time the parts of at least one and at most ``steps`` steps, the same number in all ranks.

    Returns for each part ``{"part": name, "seconds": of each step, "contains": parts included in
    its time, "ends": what it ends with, or ""}``. ``seconds``: duration of the run so far."""
    parts = adapter.step_parts()
    entries: List[Dict[str, Any]] = [
        {
            "part": part.name,
            "seconds": [],
            "contains": list(part.contains),
            "ends": part.ends,
        }
        for part in parts
    ]
    begin = time.perf_counter()
    for _ in range(steps):
        for part, entry in zip(parts, entries):
            adapter.all_reduce(0.0)  # a barrier: no rank's part waits for another rank's
            adapter.synchronize()
            start = time.perf_counter()
            part.run()
            adapter.synchronize()
            entry["seconds"].append(time.perf_counter() - start)
        over = time.perf_counter() - begin > SHARE * seconds
        if adapter.all_reduce(float(over)) > 0:
            break
    return entries


def time_step_parts(adapter: Any, steps: int, seconds: float, report: Report) -> None:
    """Store the field ``step_breakdown``. ``seconds``: duration of the run so far."""

    def work() -> Dict[str, Any]:
        require(adapter, StepBreakdown)
        if not adapter.case.is_plain:
            raise Unsupported("passes of micro-steps, and of ranks that share a step, alternate")
        return {"parts": measure(adapter, steps, seconds)}

    extras.attempt("step_breakdown", work, {"parts": []}, adapter, seconds, report)
