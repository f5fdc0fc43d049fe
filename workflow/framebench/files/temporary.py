"""Temporary folders, removed on errors, on signals, and after a kill by the next call."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from core import signals

_PREFIX = "framebench-work-"


@contextmanager
def folder() -> Iterator[Path]:
    """Make a locked folder that is removed on exit. Raises OSError.
    A signal that ends this process raises SystemExit. The lock shows other calls that it is in use.
    """
    _remove_left_over()
    with _leaving_on_signals():
        path, handle = _locked()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
            os.close(handle)


def _locked() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # the file system may have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if path.exists():  # another call may have removed the folder before it was locked
            return path, handle
        os.close(handle)


def _remove_left_over() -> None:
    """Remove this user's unlocked folders, which killed processes left."""
    for name in os.listdir(tempfile.gettempdir()):
        if not name.startswith(_PREFIX):
            continue
        path = Path(tempfile.gettempdir(), name)
        with contextlib.suppress(OSError):
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(path, flags)
            try:
                if os.fstat(handle).st_uid == os.getuid():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(handle)


@contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Turn signals that end a process into SystemExit; ignored signals stay ignored."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        usual = (signal.SIG_DFL, signal.default_int_handler)
        before = {number: signal.getsignal(number) for number in signals.ENDING}
        before = {number: handler for number, handler in before.items() if handler in usual}
    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
