"""Shared memory that loaders name after their processes."""

from __future__ import annotations

import contextlib
import os
from typing import Iterable, List

#: Folder of named shared memory.
SHARED = "/dev/shm"
#: Name prefixes of loaders' shared memory, by process: PaddlePaddle's, MXNet's.
_SEGMENTS = ("paddle_{}_", "mx_{:x}_")


def remove_shared(processes: Iterable[int]) -> None:
    """Remove shared-memory files that bear the id of one of these ``processes``, as loaders name
    them.

    The processes must have ended, or be about to."""
    beginnings = tuple(name.format(process) for process in processes for name in _SEGMENTS)
    names: List[str] = []
    with contextlib.suppress(OSError):
        names = os.listdir(SHARED)
    for name in names:
        path = os.path.join(SHARED, name)
        with contextlib.suppress(OSError):  # another one removes it, too
            if name.startswith(beginnings) and os.stat(path).st_uid == os.getuid():
                os.unlink(path)
