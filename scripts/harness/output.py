"""Files of a run: a record that appears complete or not at all, its log, and a temporary folder."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
import uuid
from typing import Iterator, Tuple


class OutputError(Exception):
    """Raised where the output cannot be written; the message has the reason and what to do."""


def explain(path: str, error: OSError) -> str:
    """Return an error that names ``path``, the reason and a remedy."""
    reason = error.strerror or error
    return f"cannot write {path}: {reason}; free some space or choose another --output"


def measured_already(output: str) -> str:
    """Return the message for an existing record, which is never replaced."""
    return f"already measured: {output}, whatever its status is; another --output runs it again"


def partial(output: str, run: str) -> str:
    """Return the temporary path of ``run`` next to its ``output``."""
    folder, name = os.path.split(output)
    # The name does not end in .json, so that the file is not taken for a record.
    return os.path.join(folder, f".{name}.{run}.part")


def prepare(output: str, log: str) -> None:
    """Make the folder of the output and an empty log, and remove the files of killed runs next to
    the output. Raises :class:`OutputError` where one of them cannot be written."""
    path = output
    try:
        os.makedirs(os.path.dirname(output), exist_ok=True)
        for left in glob.glob(partial(glob.escape(output), "*")):
            shutil.rmtree(left) if os.path.isdir(left) else os.unlink(left)
        tried = partial(output, "tried")
        with open(tried, "xb"):
            os.unlink(tried)
        path = log
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "wb"):
            pass
    except OSError as error:
        raise OutputError(explain(path, error)) from error


def write(output: str, run: str, content: bytes) -> None:
    """Write ``output``, all or nothing. Raises :class:`OutputError`, also where it has appeared
    meanwhile."""
    path = partial(output, run)
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _publish(path, output)
    except OSError as error:
        raise OutputError(explain(output, error)) from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _publish(path: str, output: str) -> None:
    """Give the file its name without replacing another.

    Without hard links, an output that existed before is kept, but not one that appears at the same
    moment."""
    try:
        os.link(path, output)
    except OSError as error:
        # Some network file systems report this error for a link that they have just made.
        if isinstance(error, FileExistsError) and os.stat(path).st_nlink > 1:
            return
        if os.path.lexists(output):
            raise OutputError(measured_already(output)) from None
        os.replace(path, output)


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield the temporary folder of the run's processes on this node, and remove it at the end.
    Folders of killed launchers are removed, too.

    Raises OutputError where it cannot be made."""
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
        with contextlib.suppress(OSError):  # gettempdir() raises it if no folder is usable
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
    for path in glob.glob(os.path.join(glob.escape(root), f"framebench-{'[0-9a-f]' * 32}")):
        with contextlib.suppress(OSError):
            if os.lstat(path).st_uid != os.getuid():
                continue
            left = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(left)
