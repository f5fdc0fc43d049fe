"""Helpers of tests that start programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

PATIENCE = 600.0  # seconds; tests wait for events, not for times


def heed_signals() -> None:
    """Restore the terminal's signals in a child.
    A test run in the background or under nohup ignores them."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def write_program(path: Path, text: str) -> Path:
    """Write an executable script, and its folder if needed; return the script's path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """Return the value of ``condition`` as soon as it is true; fail after PATIENCE."""
    end = time.monotonic() + PATIENCE
    pause = 0.02  # growing, because conditions that start a program or read all of /proc cost much
    while not (actual := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s in vain for: {what}"
        time.sleep(pause)
        pause = min(1.2 * pause, 0.2)
    return actual


def span(record: dict[str, Any]) -> tuple[float, float]:
    """Return the start and the end of a recorded run, in seconds since 1970."""
    start = datetime.fromisoformat(record["started"]).timestamp()
    return start, start + record["wall_seconds"]


def take_own_core() -> None:
    """Restrict this test process to one core, different from those of others.
    A run with one device takes the first usable core, which would be the same for all."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})


@contextmanager
def hog(core: int) -> Iterator[subprocess.Popen[bytes]]:
    spin = "print(flush=True)\nwhile True: pass"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", spin],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, [core]),
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()
