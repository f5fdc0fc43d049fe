"""Files that are complete or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_whole(target: Path, text: str) -> None:
    """Write ``text`` to ``target``, whole or not at all, with its line ends as they are; folders
    that are missing are made. Raises OSError for a target that cannot be written."""
    write_whole_bytes(target, text.encode("utf-8", "backslashreplace"))


def write_whole_bytes(target: Path, content: bytes) -> None:
    """The same of bytes."""
    target.parent.mkdir(parents=True, exist_ok=True)
    name = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}")
    # Unlike tempfile's, with the access that the umask leaves to others.
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
