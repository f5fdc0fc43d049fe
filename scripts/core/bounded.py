"""Bounded access to files of users or earlier runs: regular files only, of bounded size, within
bounded time.

A device, a FIFO or a socket is refused instead of waited for.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import time
from contextlib import closing
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, TextIO, Tuple

#: Default size limit in bytes; a record of 1,000 steps on 512 ranks has 20 MiB.
LARGEST_FILE = 128 * 2**20
#: Time limit in seconds for one file; a disk with 3 MB/s stays within it.
LONGEST_READ = 60.0
_BLOCK = 2**20
_SAFE = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


class UnfitFile(OSError):
    """File that is not regular, or exceeds a limit; the message lacks the path."""

    def __init__(self, path: str | Path, message: str) -> None:
        super().__init__(errno.EINVAL, message, str(path))

    def __str__(self) -> str:
        return str(self.strerror)


def read_bytes(path: str | Path, largest: int | None = None) -> bytes:
    """Return the content of a regular file of at most ``largest`` bytes (default: LARGEST_FILE).
    Raises OSError if it cannot be read, :class:`UnfitFile` for any other file."""
    largest = LARGEST_FILE if largest is None else largest
    with closing(_unbuffered(path)) as file:
        size = os.fstat(file.fileno()).st_size
        if size > largest:
            raise UnfitFile(path, f"has {size} bytes; allowed: at most {largest}")
        # Kernel files report a size of 0 bytes, other files may grow meanwhile.
        amount = size + 1 if 0 < size < _BLOCK else _BLOCK
        blocks, length, deadline = [], 0, time.monotonic() + LONGEST_READ
        for block in iter(lambda: file.read(amount), b""):
            blocks.append(block)
            length += len(block)
            if length > largest:
                raise UnfitFile(path, f"has more than {largest} bytes; allowed: at most that")
            if time.monotonic() > deadline:
                raise UnfitFile(path, f"was not read within {LONGEST_READ:.0f} s")
        return b"".join(blocks)


def read_end(path: str | Path, most: int) -> str:
    """Return the last ``most`` bytes of a file of any size as text; invalid bytes are replaced.
    Raises OSError if it cannot be read."""
    with closing(_unbuffered(path)) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return (file.read(most) or b"").decode("utf-8", "replace")


def read_text(path: str | Path, largest: int | None = None) -> str:
    """Return the UTF-8 text of a file, with line feeds and without a byte order mark.
    Raises as :func:`read_bytes`, and ValueError for other text."""
    try:
        text = read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is no UTF-8 text (byte {error.start})") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | Path) -> Any:
    """Return the value of a JSON file. Raises as :func:`read_bytes`, and ValueError for invalid or
    too deeply nested JSON or a repeated key."""

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


def open_to_read(path: str | Path) -> BinaryIO:
    """Open a regular file of any size. Raises as :func:`read_bytes`."""
    return BufferedReader(_unbuffered(path))


def open_to_append(path: str | Path) -> TextIO:
    """Open a regular file for appending, creating it if missing; line ends are kept.
    Raises as :func:`read_bytes`."""
    return open(
        _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "a", newline="", encoding="utf-8"
    )


def _unbuffered(path: str | Path) -> FileIO:
    return FileIO(_opened(path, os.O_RDONLY), "r")


def _opened(path: str | Path, flags: int) -> int:
    try:
        handle = os.open(path, flags | _SAFE, 0o666)
    except OSError as error:
        kind = _kind_of(path)
        if kind in (stat.S_IFREG, 0):
            raise
        raise _irregular(path, kind) from error
    kind = stat.S_IFMT(os.fstat(handle).st_mode)
    if kind != stat.S_IFREG:
        os.close(handle)
        raise _irregular(path, kind)
    return handle


def _kind_of(path: str | Path) -> int:
    """Return the type of a file; 0 if there is none."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError):
        return 0


def _irregular(path: str | Path, kind: int) -> UnfitFile:
    return UnfitFile(path, f"is {_KINDS.get(kind, 'something else')}; allowed: a regular file")
