"""Optional measurements after everything that counts. Their errors are recorded in their own field,
and the kernel ends a rank that hangs in them."""

from __future__ import annotations

import signal
from typing import Any, Callable, Dict

from harness.adapter import Adapter
from harness.measuring.failure import describe
from harness.messages.report import Report

#: Least time limit; otherwise as long as the run took so far.
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
