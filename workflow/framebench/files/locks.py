"""Locks on files. The kernel gives one back when its process ends, however it ends, so that nothing
has to be unlocked after a kill."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO, TextIO

from . import bounded


class LockError(Exception):
    """There is no lock to be had; the message says why and what to do."""


class LockUnwritable(LockError):
    """The file of the lock cannot be opened: nothing can be written beside it either."""


def take(path: Path, advice: str, busy: str | None = None) -> TextIO:
    """Lock the file ``path``, made where it is missing, until it is closed or the process ends.
    ``busy``: what another process is doing that has it; None waits until that one is done.
    ``advice``: what else could be done, for the message of a :class:`LockError`.
    """
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = bounded.open_to_append(path)
    except OSError as error:
        raise LockUnwritable(
            f"{folder}: cannot be written ({error.strerror}). Make it writable, or {advice}"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy else 0))
    except BlockingIOError:
        file.close()
        raise LockError(f"{folder}: {busy}. Wait until it ends, or {advice}") from None
    except OSError as error:  # e.g. ENOLCK, EOPNOTSUPP: some network file systems
        file.close()
        raise LockError(
            f"{folder}: the file system gives no lock ({error.strerror}), and without one two "
            f"calls could spoil each other's work; {advice}"
        ) from error
    return file


def share(path: Path) -> IO[bytes] | None:
    """Lock the file ``path`` together with others until it is closed or the process ends, so that
    :func:`take` is refused meanwhile. It is made where that is possible; None where it can neither
    be made nor read, or the file system gives no lock."""
    while True:
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                bounded.open_to_append(path).close()
            file = bounded.open_to_read(path)
        except FileNotFoundError:
            continue  # removed in the meantime
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
            # Whoever had it before may have removed it: then nobody else would see this lock.
            if os.stat(path).st_ino == os.fstat(file.fileno()).st_ino:
                return file
        except FileNotFoundError:
            pass
        except OSError:
            file.close()
            return None
        file.close()
