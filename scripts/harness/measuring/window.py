"""The timed window: the only place where the clock that counts is read."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import Any, List

from harness.adapter import Adapter, Mismatch

#: A last value that comes later after the end of the window than reading it takes, by more than
#: this part of the window and by more than these seconds, was not complete when the clock was read.
#: On two cores with many times their load honest reads of six frameworks took up to 0.043 s, which
#: was up to 0.022 s longer than to read the same again.
_LATE_PART = 0.05
_LATE_SECONDS = 0.1
_READ_AGAIN = 3


@dataclass(frozen=True)
class Window:
    """``seconds`` from before the first step to the completion of the last; ``step_seconds``
    between the marks around each step; ``start`` on a clock that all processes of a machine share
    (Linux: CLOCK_MONOTONIC)."""

    start: float
    seconds: float
    step_seconds: List[float]
    last_value: float


def measure(adapter: Adapter, steps: int, read_seconds: float = 0.0) -> Window:
    """Time ``steps`` steps. Nothing else happens in the window: no collection of garbage, no
    allocation, no reading of values. Raises Mismatch where work was still under way at its end.
    ``read_seconds``: what reading the value of a step took that was complete."""
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
    check_complete(adapter, handle, late, seconds, read_seconds)
    step_seconds = adapter.mark_seconds(marks)
    if len(step_seconds) != steps:
        raise Mismatch(f"{steps} steps gave {len(step_seconds)} step times")
    return Window(start, seconds, step_seconds, last_value)


def check_complete(
    adapter: Adapter, handle: Any, late: float, seconds: float, read_seconds: float
) -> None:
    """Raises Mismatch where the value of ``handle``, read right behind a window of ``seconds``,
    came ``late`` because of work and not because reading takes that long.

    Reading copies and adds up all outputs, which may take longer than a short window. How long is
    told by reading them again, when they are complete for certain, and by ``read_seconds``: some
    frameworks keep what they copied, and are quick the second time.
    """
    allowed = max(_LATE_SECONDS, _LATE_PART * seconds)
    if late <= read_seconds + allowed:
        return
    for _ in range(_READ_AGAIN):
        start = time.perf_counter()
        adapter.read(handle)
        read_seconds = max(read_seconds, time.perf_counter() - start)
    if late > read_seconds + allowed:
        raise Mismatch(
            f"the last value came {late:.3g} s after a window of {seconds:.3g} s, and reading "
            f"takes {read_seconds:.3g} s: synchronize() returned before the work was complete"
        )
