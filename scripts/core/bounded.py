"""Read files of users or of earlier runs, up to a size limit."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, Dict, List, Tuple

#: Default size limit in bytes; a record of 1,000 steps on 512 ranks has 20 MiB.
LARGEST_FILE = 128 * 2**20


def read_bytes(path: str | Path, largest: int | None = None) -> bytes:
    """Return the content of a file of at most ``largest`` bytes (default: LARGEST_FILE). Raises
    OSError if it is larger or cannot be read."""
    largest = LARGEST_FILE if largest is None else largest
    with open(path, "rb") as file:
        content = file.read(largest + 1)
    if len(content) > largest:
        allowed = f"has more than {largest} bytes; allowed: at most {largest}"
        raise OSError(errno.EFBIG, allowed, str(path))
    return content


def read_end(path: str | Path, most: int) -> str:
    """Return the last ``most`` bytes of a file of any size as text; invalid bytes are replaced.
    Raises OSError if it cannot be read."""
    with open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most).decode("utf-8", "replace")


def read_text(path: str | Path, largest: int | None = None) -> str:
    """Return the UTF-8 text of a file, with line feeds and without a byte order mark.
    Raises as :func:`read_bytes`, and ValueError for other text."""
    try:
        text = read_bytes(path, largest).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from None
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
