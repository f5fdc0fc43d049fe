"""Room in the temporary folder, for what ranks report and what frameworks compile."""

from __future__ import annotations

import os

from harness.reservation import allocate

#: Bytes that a run must find: what ranks report of themselves, and small files of frameworks.
NEEDED = 2**24
#: Bytes of a file system that is as good as full.
_FULL = 2**16

ADVICE = "free some space there, or set TMPDIR to another folder"


def fault(folder: str) -> str:
    """Why a run should not start with this temporary ``folder``, "" if it may. Written to, because
    a quota says nothing before that."""
    path = os.path.join(folder, "room")
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            allocate(file, NEEDED)
        finally:
            os.close(file)
            os.unlink(path)
    except OSError as error:
        return (
            f"the temporary folder {os.path.dirname(folder)} has no room for {NEEDED >> 20} MiB: "
            f"{error.strerror}; {ADVICE}"
        )
    return ""


def full(folder: str) -> str:
    """What to say of a rank that failed while its temporary ``folder`` was full, "" if it is not
    or is gone."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return ""
    if found.f_bavail * found.f_frsize >= _FULL:
        return ""
    return f"the temporary folder {os.path.dirname(folder)} is full: {ADVICE}"
