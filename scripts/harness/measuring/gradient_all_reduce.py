"""Time the gradient all-reduce of a step with nothing running alongside.

After the timed region all ranks all-reduce messages of exactly the sizes that the gradients of this
run had. All are enqueued before the last is waited for. In a training step this overlaps with the
backward pass.
"""

from __future__ import annotations

import time
from typing import Any, Dict

from core.parallelism import DATA

from harness.adapter import Collectives, Unsupported
from harness.measuring import extras
from harness.messages.report import Report

ROUNDS = 5
#: Largest part of the run's time so far that the rounds may take.
SHARE = 0.05


def measure(adapter: Collectives, seconds: float) -> Dict[str, Any]:
    """Return ``{"bytes": of each message, "seconds": of each round}``.

    There are one to ROUNDS rounds, the same number in all ranks. ``seconds``: duration of the run
    so far. Raises Unsupported where the framework does not report the sizes, or where gradients are
    not all-reduced."""
    parallelism = adapter.case.parallelism
    if parallelism != DATA:
        raise Unsupported(f"with {parallelism} there is no all-reduce of all gradients")
    messages = adapter.gradient_messages()
    run = adapter.gradient_all_reduce(messages)
    round_seconds = []
    begin = time.perf_counter()
    for number in range(1 + ROUNDS):
        adapter.all_reduce(0.0)  # a barrier: no rank waits for another that is not there yet
        adapter.synchronize()
        start = time.perf_counter()
        run()
        adapter.synchronize()
        if number:  # the first compiles and connects
            round_seconds.append(time.perf_counter() - start)
        over = time.perf_counter() - begin > SHARE * seconds
        if adapter.all_reduce(float(over)) > 0 and round_seconds:
            break
    return {"bytes": messages, "seconds": round_seconds}


def time_all_reduce(adapter: Collectives, seconds: float, report: Report) -> None:
    """Time the gradient all-reduce and store the result as the report's field
    ``gradient_all_reduce``. ``seconds``: duration of the run so far."""
    empty: Dict[str, Any] = {"bytes": [], "seconds": []}
    extras.attempt(
        "gradient_all_reduce", lambda: measure(adapter, seconds), empty, adapter, seconds, report
    )
