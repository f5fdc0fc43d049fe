"""Files that are complete or not there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_whole(target: Path, text: str) -> None:
    """Write ``text`` to ``target``, whole or not at all, with its line ends as they are; folders
    that are missing are made. Raises OSError for a target that cannot be written."""
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)  # mkstemp gives the owner alone access
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
