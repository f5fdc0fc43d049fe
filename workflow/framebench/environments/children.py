"""Children that end with this process, however it ends, and take along what they have started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: Seconds that a descendant may take to end when it is asked to.
_PATIENCE = 30.0


def end_on_signals() -> None:
    """Leave by an exception where a signal asks this process to end, so that :func:`run` can end
    its child."""

    def leave(number: int, frame: FrameType | None) -> None:
        for other in _SIGNALS:  # a second one must not interrupt the cleaning up
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, leave)


def end_descendants(busy: Callable[[], object]) -> None:
    """Ask all descendants in this process's own group to end, each once, as a terminal does by
    Ctrl-C, while ``busy``; those that are left after a while are killed."""
    asked = dict[int, float]()
    while busy():
        now = time.monotonic()
        for process in _descendants():
            patient = now - asked.setdefault(process, now) < _PATIENCE
            if asked[process] == now or not patient:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGTERM if patient else signal.SIGKILL)
        time.sleep(0.05)


def _descendants() -> list[int]:
    """Process ids of the descendants of this process that are in its group."""
    parents: dict[int, int] = {}
    own, group = os.getpid(), os.getpgrp()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError):  # it has ended meanwhile
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[2]) == group:
                parents[int(name)] = int(fields[1])
    found, new = set[int](), {own}
    while new:
        new = {process for process, parent in parents.items() if parent in new} - found
        found |= new
    return sorted(found)


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
    capture: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Wait for the command, whose output is caught where ``capture`` says so; ``keep``: files that
    stay open in it. It gets a process group, which is killed when this process is told to end; and
    a signal of the kernel's, should this one be killed itself."""
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def die_with_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    output = subprocess.PIPE if capture else None
    process = subprocess.Popen(
        command,
        env=environment,
        pass_fds=keep,
        stdout=output,
        stderr=output,
        text=True,
        process_group=0,
        preexec_fn=die_with_parent,
        encoding="utf-8",
        errors="replace",
    )
    try:
        out, err = process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)
