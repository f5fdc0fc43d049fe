"""Temporary folders that go with their process: on errors and on signals at once, and after a kill
in the next call that makes one."""

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

_PREFIX = "framebench-work-"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def folder() -> Iterator[Path]:
    """Make a folder that is removed on the way out. A signal that asks this process to end leaves
    by SystemExit. The folder is locked, so that others know that it is in use. Raises OSError."""
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
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if path.exists():  # another call may have removed it before it was locked
            return path, handle
        os.close(handle)


def _remove_left_over() -> None:
    """Remove the folders of this user that no process has locked: theirs were killed."""
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
    """Turn the signals that end a process into SystemExit; those that are ignored stay ignored."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {}
    if threading.current_thread() is threading.main_thread():
        usual = (signal.SIG_DFL, signal.default_int_handler)
        before = {one: signal.getsignal(one) for one in _SIGNALS}
        before = {one: handler for one, handler in before.items() if handler in usual}
    for number in before:
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
