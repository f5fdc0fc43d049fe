"""How long the exchange of a step's gradients takes with nothing beside it.

Behind the window all ranks exchange messages of exactly the sizes in which the gradients of this
run went, all enqueued before the last is waited for. In a step the exchange overlaps with the
backward pass.
"""

from __future__ import annotations

import time
from typing import Any, Dict

from harness.adapter import Collectives, Unsupported
from harness.measuring import extras
from harness.messages.report import Report
from harness.parallelism import DATA

ROUNDS = 5
#: No further round where this part of what the run took until then is used up.
SHARE = 0.05


def measure(adapter: Collectives, seconds: float) -> Dict[str, Any]:
    """``{"bytes": of each message, "seconds": of each round}``, of at most ROUNDS rounds, at least
    one, the same number in all ranks. ``seconds``: what the run took until now. Raises Unsupported
    where the framework does not tell the sizes, or where gradients go otherwise."""
    parallelism = adapter.case.parallelism
    if parallelism != DATA:
        raise Unsupported(f"with {parallelism} gradients do not go by an all-reduce of all of them")
    messages = adapter.gradient_messages()
    run = adapter.gradient_all_reduce(messages)
    found = []
    begin = time.perf_counter()
    for number in range(1 + ROUNDS):
        adapter.all_reduce(0.0)  # a barrier: no rank waits for another that is not there yet
        adapter.synchronize()
        start = time.perf_counter()
        run()
        adapter.synchronize()
        if number:  # the first compiles and connects
            found.append(time.perf_counter() - start)
        over = time.perf_counter() - begin > SHARE * seconds
        if adapter.all_reduce(float(over)) > 0 and found:
            break
    return {"bytes": messages, "seconds": found}


def time_all_reduce(adapter: Collectives, seconds: float, report: Report) -> None:
    """Leave it behind everything that counts. ``seconds``: of the run so far."""
    empty: Dict[str, Any] = {"bytes": [], "seconds": []}
    extras.attempt(
        "gradient_exchange", lambda: measure(adapter, seconds), empty, adapter, seconds, report
    )
