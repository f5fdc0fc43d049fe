"""Locks on files. The kernel releases a lock when its process ends, even after a kill."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import TextIO


class LockError(Exception):
    """Raised for a lock that cannot be taken, with the reason and advice."""


def take(path: Path, advice: str, busy: str | None = None) -> TextIO:
    """Lock the file ``path``, created if missing, until it is closed or the process ends.

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
