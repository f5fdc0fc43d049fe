"""What a file of weights has, whatever its format."""

from __future__ import annotations

import hashlib
from typing import Any, Callable, NamedTuple, Sequence

from harness import bounded


class Stored(NamedTuple):
    """``names``: of its arrays, as the file has them; ``array``: of a name, in float32; ``called``:
    from a name to that of Hugging Face, whose dense layers are (out, in), as ``array`` then has
    them; ``files``: all that it is in; ``is_own``: left by a training here, with the names and the
    layout that all frameworks share."""

    names: Sequence[str]
    array: Callable[[str], Any]
    called: Callable[[str], str]
    files: Sequence[str]
    is_own: bool = False

    def sha256(self) -> str:
        """Over the content of all files (hex)."""
        digest = hashlib.sha256()
        for path in self.files:
            with bounded.opened(path) as file:
                for block in iter(lambda: file.read(1 << 20), b""):
                    digest.update(block)
        return digest.hexdigest()
