"""Ending in order: signals become an exception, and what is temporary goes, with every process of
the run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from typing import Any, Iterator, Optional, Sequence

from harness.disk import reservation, room
from harness.processes import launch
from harness.processes.guard import sweep


class Interrupted(BaseException):
    """A signal asked this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Turn the signals that end a process into :class:`Interrupted`, so that cleaning up happens
    on the way out, and ignore them during it. Those ignored from the start stay ignored."""

    def leave(number: int, frame: Any) -> None:
        for other in numbers:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number)

    numbers = [
        number
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in numbers:
        signal.signal(number, leave)
    yield


@contextmanager
def temporary_folder(run: str, reserved: str = "", files: Sequence[int] = ()) -> Iterator[str]:
    """The temporary folder of the processes marked ``run`` on this node and the guard that outlives
    this process, which removes the ``reserved`` file too and keeps the ``files`` open as long. On
    the way out, no process of the run is left and the folder is gone. Raises
    :class:`reservation.ReservationError` where there is no room for it."""
    try:
        folder = os.path.join(tempfile.gettempdir(), f"framebench-{uuid.uuid4().hex}")
    except OSError as error:
        raise reservation.ReservationError(f"{error}; {room.ADVICE}") from error
    guard: Optional["subprocess.Popen[bytes]"] = None
    try:
        # Before there is something to remove: this process may be killed at any moment.
        guard = launch.start_guard(run, folder, reserved, files)
        room.make(folder)
        yield folder
    finally:
        sweep(run)
        shutil.rmtree(folder, ignore_errors=True)
        if guard is not None and guard.stdin is not None:
            guard.stdin.close()
