"""Space in the temporary folder, for ranks' reports and frameworks' compilers."""

from __future__ import annotations

import errno
import os

from harness.disk.reservation import ReservationError, allocate

#: Bytes that a run needs for ranks' reports and small files of frameworks.
NEEDED = 2**24
#: Free bytes below which a file system counts as full.
_FULL = 2**16

ADVICE = "free some space there, or set TMPDIR to another folder"


def make(folder: str) -> None:
    """Make the temporary ``folder`` of a run. Raises :class:`ReservationError` where it cannot be
    made or has no space.

    The space is written to, because a quota shows only then."""
    path = os.path.join(folder, "room")
    try:
        os.mkdir(folder, 0o700)
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            allocate(file, NEEDED)
        finally:
            os.close(file)
            os.unlink(path)
    except OSError as error:
        if error.errno == errno.EFBIG:  # a limit on the size of a file says nothing of the room
            return
        raise ReservationError(
            f"the temporary folder {os.path.dirname(folder)} has no room for {NEEDED >> 20} MiB: "
            f"{error.strerror}; {ADVICE}"
        ) from error


def full(folder: str) -> str:
    """Return a hint for a rank that failed while its temporary ``folder`` was full, ""
    otherwise."""
    try:
        usage = os.statvfs(folder)
    except OSError:
        return ""
    if usage.f_bavail * usage.f_frsize >= _FULL:
        return ""
    return f"the temporary folder {os.path.dirname(folder)} is full: {ADVICE}"
