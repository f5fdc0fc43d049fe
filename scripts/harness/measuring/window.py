"""The timed region, the only place where the clock that counts is read."""

from __future__ import annotations

import contextlib
import gc
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterator, List, Optional

from harness.adapter import Adapter, Mismatch

#: Steps that may be enqueued beyond the one that is waited for. One keeps the device busy; it is
#: the same for every framework, so that none has a longer queue.
RUN_AHEAD = 1

#: If the last value comes later than its reading time by more than this share of the timed region
#: and these seconds, work was incomplete. On two overloaded cores, reads of six frameworks took up
#: to 0.043 s, up to 0.022 s longer than reading the same value again.
_LATE_PART = 0.05
_LATE_SECONDS = 0.1
_READ_AGAIN = 3

#: Share of the timed region that may be left after waiting for every step. A framework that waits
#: for the loss may leave the last backward pass.
_LEFT_PART = 0.5


@dataclass(frozen=True)
class Window:
    """Results of a timed region.

    ``seconds``: from before the first step to the completion of the last. ``step_seconds``: between
    the completions of consecutive steps, the first from the start. ``start``: on a clock that all
    processes of a machine share (Linux: CLOCK_MONOTONIC)."""

    start: float
    seconds: float
    step_seconds: List[float]
    last_value: float


def run_ahead(adapter: Adapter) -> int:
    """Return how many steps may be enqueued beyond the one that is waited for."""
    return 0 if adapter.blocking() else RUN_AHEAD


@contextlib.contextmanager
def all_ready(adapter: Adapter, barrier: Optional[Callable[[], None]]) -> Iterator[None]:
    """Enter when the device is idle and all ranks are ready; disable garbage collection inside.

    No rank starts its clock while another warms up. ``barrier``: waits for ranks that do not
    communicate with this one."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        if adapter.rank_context.world_size > 1:
            adapter.all_reduce(0.0)
        if barrier:
            barrier()
        adapter.synchronize()
        adapter.reset_peak_device_memory()
        yield
    finally:
        gc.enable()


def measure(
    adapter: Adapter,
    steps: int,
    ahead: int,
    read_seconds: float = 0.0,
    barrier: Optional[Callable[[], None]] = None,
    step: Optional[Callable[[], Any]] = None,
) -> Window:
    """Time ``steps`` steps.

    Once a step is enqueued, the step ``ahead`` places before it is waited for; with ``ahead`` 0
    each step completes before the next. Nothing else happens in the timed region: no
    garbage collection, no allocation, no reading of values. ``read_seconds``: time to read the
    value of a completed step. ``barrier``: see :func:`all_ready`. ``step``: replaces the adapter's
    own; all it does is timed. Raises Mismatch where work was still running at the end."""
    marks: List[Any] = [None] * steps
    moments = [0.0] * (steps + 1)
    handle: Any = None
    mark, wait, clock = adapter.mark, adapter.wait, time.perf_counter
    step = step or adapter.step
    synchronize = adapter.synchronize
    finish = wait if ahead else lambda _: synchronize()
    with all_ready(adapter, barrier):
        start = moments[0] = clock()
        for index in range(steps + ahead):
            if index < steps:
                handle = step()
                marks[index] = mark(handle)
            if index >= ahead:
                finish(marks[index - ahead])
                moments[index - ahead + 1] = clock()
                marks[index - ahead] = None  # frees the memory that the mark holds
        synchronize()
        end = clock()
    last_value = float(adapter.read(handle))
    late = clock() - end
    seconds = end - start
    check_waited(end - moments[-1], seconds)
    check_complete(late, seconds, lambda: adapter.read(handle), read_seconds)
    return Window(start, seconds, [b - a for a, b in zip(moments, moments[1:])], last_value)


def check_waited(left: float, seconds: float) -> None:
    """Raise Mismatch where synchronization took ``left`` seconds though every step had been waited
    for.

    In that case waiting had no effect, and nothing bounded the queue. ``seconds``: seconds of the
    timed region."""
    if left > max(_LATE_SECONDS, _LEFT_PART * seconds):
        raise Mismatch(
            f"{left:.3g} s of a window of {seconds:.3g} s were left when every step had been "
            "waited for: wait() returned before the work was complete"
        )


def check_complete(
    late: float,
    seconds: float,
    read: Callable[[], Any],
    read_seconds: float = 0.0,
    part: float = _LATE_PART,
) -> None:
    """Raise Mismatch where reading the last result took ``late`` seconds because work was still
    running.

    ``seconds``: seconds of the timed work just before, of which at most the share ``part`` may be
    left. Reading copies and adds up all outputs, which may take longer than a short region. The
    duration of reading is known from reading again and from ``read_seconds``, because some
    frameworks keep the copy and read faster the second time."""
    allowed = max(_LATE_SECONDS, part * seconds)
    if late <= read_seconds + allowed:
        return
    for _ in range(_READ_AGAIN):
        start = time.perf_counter()
        read()
        read_seconds = max(read_seconds, time.perf_counter() - start)
    if late > read_seconds + allowed:
        raise Mismatch(
            f"the last result came {late:.3g} s after {seconds:.3g} s of work, and reading takes "
            f"{read_seconds:.3g} s: synchronize() returned before the work was complete"
        )
