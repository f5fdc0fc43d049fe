"""Where the time of a training step goes: its parts, timed behind the window.

In the window nothing is added to a step. Behind it, a few more steps are run part by part, each
waited for. That takes them a little longer than in the window, where parts overlap.
"""

from __future__ import annotations

import time
from typing import Any, Dict, List

from harness.adapter import StepBreakdown, Unsupported, require
from harness.measuring import extras
from harness.messages.report import Report
from harness.parallelism import DATA

#: No further step where this part of what the run took until then is used up.
SHARE = 0.1


def measure(adapter: StepBreakdown, steps: int, seconds: float) -> List[Dict[str, Any]]:
    """Seconds of each part in each of at most ``steps`` steps, at least one: ``{"part": name,
    "seconds": of each step, "contains": parts whose time is in them too, "ends": with what, ""
    where its name says it}``. ``seconds``: what the run took until now. All ranks do the same
    number of steps."""
    parts = adapter.step_parts()
    found: List[Dict[str, Any]] = [
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
        for part, entry in zip(parts, found):
            adapter.all_reduce(0.0)  # a barrier: no rank's part waits for another rank's
            adapter.synchronize()
            start = time.perf_counter()
            part.run()
            adapter.synchronize()
            entry["seconds"].append(time.perf_counter() - start)
        over = time.perf_counter() - begin > SHARE * seconds
        if adapter.all_reduce(float(over)) > 0:
            break
    return found


def time_step_parts(adapter: Any, steps: int, seconds: float, report: Report) -> None:
    """Time the parts of a step behind everything that counts. ``seconds``: of the run so far."""

    def work() -> Dict[str, Any]:
        require(adapter, StepBreakdown)
        if adapter.case.accumulation > 1:
            raise Unsupported("forward and backward passes of the micro-steps alternate")
        if adapter.case.parallelism != DATA:
            raise Unsupported(f"with {adapter.case.parallelism} ranks exchange in every part")
        return {"parts": measure(adapter, steps, seconds)}

    extras.attempt("split", work, {"parts": []}, adapter, seconds, report)
