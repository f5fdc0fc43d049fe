"""What is measured behind everything that counts: whatever goes wrong with it says so in its own
place, and a rank that hangs is ended by the kernel."""

from __future__ import annotations

import signal
from typing import Any, Callable, Dict

from harness.adapter import Adapter
from harness.measuring.failure import describe
from harness.messages.report import Report

_LEAST_SECONDS = 60  # that it may take; else as long as the run took until then


def attempt(
    name: str,
    work: Callable[[], Dict[str, Any]],
    empty: Dict[str, Any],
    adapter: Adapter,
    seconds: float,
    report: Report,
) -> None:
    """Leave what ``work`` returns as the field ``name``, with the ``reason`` "", or else ``empty``
    with one. ``seconds``: of the run so far."""
    report.fields[name] = {"reason": "it was ended: it took too long", **empty}
    report.succeed()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(max(_LEAST_SECONDS, int(seconds)))
    try:
        entry = {"reason": "", **work()}
    except Exception as error:
        entry = {"reason": describe(error, adapter)["reason"], **empty}
    signal.alarm(0)
    report.fields[name] = entry
