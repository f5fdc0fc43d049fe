"""Where the time of a training step goes: its parts, timed behind the window.

In the window nothing is added to a step. Behind it, a few more steps are run part by part, each
waited for. That takes them a little longer than in the window, where parts overlap.
"""

from __future__ import annotations

import signal
import time
from typing import Any, Dict, List

from harness.adapter import StepBreakdown, require
from harness.measuring.failure import describe
from harness.messages.report import Report

#: No further step where this part of what the run took until then is used up.
SHARE = 0.1

_LEAST_SECONDS = 60  # that it may take; else as long as the run took until then


def measure(adapter: StepBreakdown, steps: int, seconds: float) -> List[Dict[str, Any]]:
    """Seconds of each part in each of at most ``steps`` steps, at least one: ``{"part": name,
    "seconds": of each step, "contains": parts whose time is in them too, "ends": with what, ""
    where its name says it}``. ``seconds``: what the run took until now. All ranks do the same
    number of steps."""
    parts = adapter.parts()
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


def split_step(adapter: Any, steps: int, seconds: float, report: Report) -> None:
    """Time the parts of a step behind everything that counts: whatever goes wrong here says so in
    its own place, and a rank that hangs is ended by the kernel. ``seconds``: of the run so far."""
    report.fields["split"] = {"reason": "it was ended: it took too long", "parts": []}
    report.succeed()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max(_LEAST_SECONDS, int(seconds)))
    try:
        require(adapter, StepBreakdown)
        entry = {"reason": "", "parts": measure(adapter, steps, seconds)}
    except Exception as error:
        entry = {"reason": describe(error, adapter)["reason"], "parts": []}
    signal.alarm(0)
    report.fields["split"] = entry
