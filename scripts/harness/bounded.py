"""Open files of users or earlier runs safely: only regular files, and of bounded size where they
are read whole. Devices, FIFOs and sockets are refused.

The driver has the same in ``workflow/framebench/files/bounded.py``.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import IO, Any, Dict, List, Optional, Tuple, Union

#: Bytes. A record of 1,000 steps on 512 ranks has 20 MiB.
LARGEST_FILE = 128 * 2**20
_SAFE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnfitFile(OSError):
    """Raised for anything but a regular file within the bounds; ``strerror`` is without the
    path."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], message: str) -> None:
        super().__init__(errno.EINVAL, message, str(path))


def opened(path: Union[str, "os.PathLike[str]"]) -> IO[bytes]:
    """Open a regular file of any size. Raises OSError where it cannot be read, :class:`UnfitFile`
    for anything else."""
    try:
        handle = os.open(path, _SAFE)
    except OSError as error:
        if error.errno == errno.ENXIO:  # what a socket answers
            raise _irregular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _irregular(path)
    return os.fdopen(handle, "rb")


def _irregular(path: Union[str, "os.PathLike[str]"]) -> UnfitFile:
    return UnfitFile(path, "is no regular file")


def read_bytes(path: Union[str, "os.PathLike[str]"], largest: Optional[int] = None) -> bytes:
    """Return the content of a regular file of at most ``largest`` bytes (default LARGEST_FILE).
    Raises as :func:`opened`."""
    largest = LARGEST_FILE if largest is None else largest
    with opened(path) as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        raise UnfitFile(path, "has more than %d bytes" % largest)
    return content


def read_json(path: Union[str, "os.PathLike[str]"]) -> Any:
    """Return the value of a JSON file. Raises as :func:`opened`, and ValueError for invalid or too
    deeply nested JSON or a repeated key."""

    def unique_keys(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            keys = [key for key, _ in pairs]
            repeated = next(key for key in members if keys.count(key) > 1)
            raise ValueError(f"gives the key {repeated!r} twice; allowed: each once")
        return members

    try:
        content = read_bytes(path).decode("utf-8-sig")
        return json.loads(content, object_pairs_hook=unique_keys)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
