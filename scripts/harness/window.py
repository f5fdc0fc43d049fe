"""The timed window: the only place where the clock that counts is read."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Any, List

from harness.adapter import Adapter, Mismatch

#: A last value that comes later than this many seconds, and half a window, after the end of the
#: window was not complete when the clock was read.
_LATE_SECONDS = 3.0


@dataclass(frozen=True)
class Window:
    """``seconds`` from before the first step to the completion of the last; ``step_seconds``
    between the marks around each step; ``start`` on a clock that all processes of a machine share
    (Linux: CLOCK_MONOTONIC)."""

    start: float
    seconds: float
    step_seconds: List[float]
    last_value: float


def measure(adapter: Adapter, steps: int) -> Window:
    """Time ``steps`` steps. Nothing else happens in the window: no collection of garbage, no
    allocation, no reading of values. Raises Mismatch where work was still under way at its end."""
    marks: List[Any] = [None] * (steps + 1)
    handle: Any = None
    step, mark, synchronize, clock = (
        adapter.step,
        adapter.mark,
        adapter.synchronize,
        time.perf_counter,
    )
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        if adapter.place.world_size > 1:
            adapter.all_reduce(0.0)  # a barrier: no rank starts its clock while another warms up
        synchronize()
        adapter.reset_peak_device_memory()
        start = clock()
        marks[0] = mark()
        for index in range(1, steps + 1):
            handle = step()
            marks[index] = mark()
        synchronize()
        end = clock()
    finally:
        gc.enable()
    last_value = float(adapter.read(handle))
    late = clock() - end
    seconds = end - start
    if late > max(_LATE_SECONDS, 0.5 * seconds):
        raise Mismatch(
            f"the last value came {late:.3g} s after a window of {seconds:.3g} s: "
            "synchronize() returned before the work was complete"
        )
    step_seconds = adapter.mark_seconds(marks)
    if len(step_seconds) != steps:
        raise Mismatch(f"{steps} steps gave {len(step_seconds)} step times")
    return Window(start, seconds, step_seconds, last_value)
