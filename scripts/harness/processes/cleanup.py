"""Orderly end of a run: signals become an exception, and temporary files are removed."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import tempfile
import uuid
from contextlib import contextmanager, suppress
from typing import Any, Iterator, List, Tuple

from core import programs

from harness.output import OutputError

_OWN_FOLDER = re.compile("framebench-[0-9a-f]{32}")


class Interrupted(BaseException):
    """Raised where a signal asks this process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def signals_raise() -> Iterator[None]:
    """Turn signals that end a process into :class:`Interrupted`, and ignore them during cleanup.

    Signals that were ignored from the start stay ignored."""

    left: List[int] = []

    def leave(number: int, frame: Any) -> None:
        if not left:
            left.append(number)
            programs.ignore_signals(numbers)
            raise Interrupted(number)

    numbers = [
        number
        for number in programs.ENDING_SIGNALS
        if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in numbers:
        signal.signal(number, leave)
    yield


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield the temporary folder of the run's processes on this node, and remove it at the end.
    Folders of killed launchers are removed, too.

    Raises :class:`OutputError` where it cannot be made."""
    name = f"framebench-{uuid.uuid4().hex}"
    try:
        folder, lock = _make_locked(name)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
    finally:
        # Clean up again, because a signal may have interrupted the lines above. No second signal
        # can, because later ones are ignored.
        with suppress(OSError):  # gettempdir() raises it if no folder is usable
            for left in (f"{name}.new", name):
                shutil.rmtree(os.path.join(tempfile.gettempdir(), left), ignore_errors=True)


def _make_locked(name: str) -> Tuple[str, int]:
    """Return a new temporary folder and the descriptor that locks it as long as this process
    lives."""
    try:
        root = tempfile.gettempdir()
        _remove_left(root)
        folder = os.path.join(root, name)
        os.mkdir(f"{folder}.new", 0o700)
        lock = os.open(f"{folder}.new", os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(f"{folder}.new", folder)
    except OSError as error:
        raise OutputError(
            f"the temporary folder {tempfile.tempdir or ''}: {error.strerror}; free some space "
            "there, or set TMPDIR to another folder"
        ) from error
    return folder, lock


def _remove_left(root: str) -> None:
    """Remove this user's temporary folders whose launcher has ended."""
    for name in os.listdir(root):
        path = os.path.join(root, name)
        with suppress(OSError):
            if not _OWN_FOLDER.fullmatch(name) or os.lstat(path).st_uid != os.getuid():
                continue
            left = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(left)
