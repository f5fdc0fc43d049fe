"""What tests that start programs share."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 600.0  # seconds; tests wait for events, never for a time


def heed_signals() -> None:
    """In a child, before it starts: end by the signals that a terminal sends, which a test run in
    the background or under nohup was told to ignore."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """What ``condition`` gives as soon as that is true; fails if it is not in time."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s in vain for: {what}"
        time.sleep(0.02)
    return found


def take_own_core() -> None:
    """Keep to one core, another one than the test process beside this one: a run with one device
    takes the first core that it may use, and all test processes would wait for the same one."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
