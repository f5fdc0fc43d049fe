"""Optional measurements after everything that counts: the parts of a training step, and the
all-reduce of its gradients with nothing running alongside.

Nothing is added to steps in the timed region. Errors here are recorded in a field of their own, and
the kernel ends a rank that hangs. Parts take a little longer than in timed steps, where they
overlap with each other and with the all-reduce.
"""

from __future__ import annotations

import signal
import time
from typing import Any, Callable, Dict, List, Sequence

from core.parallelism import DATA

from harness.adapter import Adapter, Collectives, StepBreakdown, Unsupported, require
from harness.measuring.failure import describe
from harness.messages.report import Report

#: Largest parts of the run's time so far that parts of steps, and rounds of all-reduces, may take.
PARTS_SHARE, ALL_REDUCE_SHARE = 0.1, 0.05
#: All-reduces of all gradients, besides a first one, which compiles and connects.
ROUNDS = 5
#: Least time limit in seconds; otherwise as long as the run took so far.
LEAST_SECONDS = 60


def attempt(
    name: str,
    work: Callable[[], Dict[str, Any]],
    empty: Dict[str, Any],
    adapter: Adapter,
    seconds: float,
    report: Report,
) -> None:
    """Store the result of ``work`` as the field ``name``, with an empty ``reason``.

    On failure the field is ``empty`` with a reason. ``seconds``: duration of the run so far."""
    report.fields[name] = {"reason": "it was stopped because it took too long", **empty}
    report.succeed()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max(LEAST_SECONDS, int(seconds)))
    try:
        entry = {"reason": "", **work()}
    except Exception as error:
        entry = {"reason": describe(error, adapter)["reason"], **empty}
    signal.alarm(0)
    report.fields[name] = entry


def _rounds(
    adapter: Any, works: Sequence[Callable[[], Any]], fewest: int, most: int, seconds: float
) -> List[List[float]]:
    """Return the seconds of each of ``works``, synchronized, in each round.

    There are ``fewest`` to ``most`` rounds, the same number in all ranks; no further one begins
    after ``seconds``."""
    rounds: List[List[float]] = []
    begin = time.perf_counter()
    while len(rounds) < most:
        rounds.append([])
        for work in works:
            adapter.all_reduce(0.0)  # a barrier: no rank waits for another that is not there yet
            adapter.synchronize()
            start = time.perf_counter()
            work()
            adapter.synchronize()
            rounds[-1].append(time.perf_counter() - start)
        over = time.perf_counter() - begin > seconds
        if adapter.all_reduce(float(over)) > 0 and len(rounds) >= fewest:
            break
    return rounds


def time_parts(adapter: StepBreakdown, steps: int, seconds: float) -> List[Dict[str, Any]]:
    """Time the parts of at least one and at most ``steps`` steps, the same number in all ranks.

    Returns for each part ``{"part": name, "seconds": of each step, "contains": parts included in
    its time, "ends": what it ends with, or ""}``. ``seconds``: duration of the run so far."""
    parts = adapter.step_parts()
    rounds = _rounds(adapter, [part.run for part in parts], 1, steps, PARTS_SHARE * seconds)
    return [
        {
            "part": part.name,
            "seconds": list(own),
            "contains": list(part.contains),
            "ends": part.ends,
        }
        for part, own in zip(parts, zip(*rounds))
    ]


def note_parts(adapter: Any, steps: int, seconds: float, report: Report) -> None:
    """Store the field ``step_breakdown``. ``seconds``: duration of the run so far."""

    def work() -> Dict[str, Any]:
        require(adapter, StepBreakdown)
        if not adapter.case.is_plain:
            raise Unsupported("passes of micro-steps, and of ranks that share a step, alternate")
        return {"parts": time_parts(adapter, steps, seconds)}

    attempt("step_breakdown", work, {"parts": []}, adapter, seconds, report)


def time_all_reduce(adapter: Collectives, seconds: float) -> Dict[str, Any]:
    """Time all-reduces of messages of exactly the sizes that the gradients of this run had.

    Returns ``{"bytes": of each message, "seconds": of each round}``. All messages are enqueued
    before the last is waited for. There are one to ROUNDS rounds, the same number in all ranks.
    ``seconds``: duration of the run so far. Raises Unsupported where the framework does not report
    the sizes, or where gradients are not all-reduced."""
    parallelism = adapter.case.parallelism
    if parallelism != DATA:
        raise Unsupported(f"with {parallelism} there is no all-reduce of all gradients")
    messages = adapter.gradient_messages()
    run = adapter.gradient_all_reduce(messages)
    rounds = _rounds(adapter, [run], 2, 1 + ROUNDS, ALL_REDUCE_SHARE * seconds)
    return {"bytes": messages, "seconds": [taken for (taken,) in rounds[1:]]}


def note_all_reduce(adapter: Collectives, seconds: float, report: Report) -> None:
    """Store the field ``gradient_all_reduce``. ``seconds``: duration of the run so far."""
    empty: Dict[str, Any] = {"bytes": [], "seconds": []}
    attempt(
        "gradient_all_reduce", lambda: time_all_reduce(adapter, seconds), empty, adapter, seconds,
        report,
    )  # fmt: skip
