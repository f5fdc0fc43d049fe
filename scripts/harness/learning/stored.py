"""Content of a file of weights, independent of its format."""

from __future__ import annotations

import hashlib
from typing import Any, Callable, NamedTuple, Sequence

from core import bounded


class Stored(NamedTuple):
    """Arrays in a file of weights.

    ``names``: as the file has them. ``array``: returns an array by name, in float32. ``called``:
    returns Hugging Face's name, whose dense layers are (out, in), as ``array`` then has them.
    ``files``: paths of all files. ``is_own``: written by a training here, with the names and layout
    that all frameworks share."""

    names: Sequence[str]
    array: Callable[[str], Any]
    called: Callable[[str], str]
    files: Sequence[str]
    is_own: bool = False

    def sha256(self) -> str:
        """Return the SHA-256 (hex) of the content of all files."""
        digest = hashlib.sha256()
        for path in self.files:
            with bounded.open_to_read(path) as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
        return digest.hexdigest()
