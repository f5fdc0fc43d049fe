"""Orderly end of a run: signals become an exception, and temporary files and all processes of the
run are removed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import uuid
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence

from core import signals

from harness.output import OutputError
from harness.processes import launch
from harness.processes.guard import sweep

#: What to do about a temporary folder that is full or missing.
ADVICE = "free some space there, or set TMPDIR to another folder"


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
            signals.ignore(numbers)
            raise Interrupted(number)

    numbers = [
        number for number in signals.ENDING if signal.getsignal(number) is not signal.SIG_IGN
    ]
    for number in numbers:
        signal.signal(number, leave)
    yield


def _folder_of_temporary_files() -> str:
    """Return the folder that the environment names for temporary files, or else that of
    ``tempfile``, which tries a folder by a file that a process killed meanwhile leaves there.
    Raises OSError where there is none."""
    for name in ("TMPDIR", "TEMP", "TMP"):
        folder = os.path.abspath(os.environ.get(name) or os.devnull)
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    return tempfile.gettempdir()


@contextmanager
def temporary_folder(
    run: str, reserved: Sequence[str] = (), files: Sequence[int] = ()
) -> Iterator[str]:
    """Yield the temporary folder of the run's processes on this node.

    A guard outlives this process: it also removes the ``reserved`` files, and keeps ``files`` open
    as long. On exit no process of the run is left and the folder is gone. Raises
    :class:`OutputError` where it cannot be made."""
    try:
        tempfile.tempdir = tempfile.tempdir or _folder_of_temporary_files()
    except OSError as error:
        raise OutputError(f"{error}; {ADVICE}") from error
    folder = os.path.join(tempfile.tempdir, f"framebench-{uuid.uuid4().hex}")
    guard: Optional["subprocess.Popen[bytes]"] = None
    try:
        # The guard comes first, because this process may be killed at any moment.
        guard = launch.start_guard(run, folder, reserved, files)
        try:
            os.mkdir(folder, 0o700)
        except OSError as error:
            raise OutputError(
                f"the temporary folder {tempfile.tempdir}: {error.strerror}; {ADVICE}"
            ) from error
        yield folder
    finally:
        sweep(run)
        shutil.rmtree(folder, ignore_errors=True)
        if guard is not None:  # nothing is left to it, and it holds the lock of the machine
            guard.kill()
            guard.communicate()
