"""Writing files: complete or not at all, and by one process at a time.

Runs on any Python that the harness supports."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO


def write_whole(target: Path, content: str | bytes) -> None:
    """Write ``content`` to ``target``, whole or not at all, with its line ends.
    Missing folders are created. Raises OSError."""
    write_together({target: content})


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Write all files or none: everything is on disk before the first one is replaced.

    They are replaced in order, so that the last one can mark the others as complete. If a target
    cannot be written, raises OSError and leaves the old files.
    """
    written: dict[Path, Path] = {}
    try:
        for target, content in files.items():
            if isinstance(content, str):
                content = content.encode("utf-8", "backslashreplace")
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
            target.parent.mkdir(parents=True, exist_ok=True)
            name = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
            # Other users' access follows the umask, unlike with tempfile.
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            written[target] = name
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            except OSError as error:  # the error of an open file lacks the file's name
                raise OSError(error.errno, error.strerror, str(target)) from error
        for target, name in list(written.items()):
            os.replace(name, target)
            del written[target]
    finally:
        for name in written.values():
            with contextlib.suppress(OSError):
                os.unlink(name)


class LockError(Exception):
    """Raised for a lock that cannot be taken, with the reason and advice."""


def lock(path: Path, advice: str, busy: str | None = None) -> TextIO:
    """Lock the file ``path``, created if missing, until it is closed or the process ends, even by
    a kill.

    ``busy``: activity of another process that has the lock, for the message; None waits for it.
    ``advice``: alternative for the message of a :class:`LockError`.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise LockError(
            f"{folder}: cannot be written ({error.strerror}). Make it writable, or {advice}"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
    except BlockingIOError:
        file.close()
        raise LockError(f"{folder}: {busy}. Wait until it ends, or {advice}") from None
    except OSError as error:  # for example ENOLCK or EOPNOTSUPP of some network file systems
        file.close()
        raise LockError(
            f"{folder}: the file system gives no lock ({error.strerror}), and without one two "
            f"calls could spoil each other's work; {advice}"
        ) from error
    return file
