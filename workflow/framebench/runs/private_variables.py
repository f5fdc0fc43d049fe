"""Variables of ranks go through a file that only the user can read: every user of a machine reads
the command lines of all others. The files lie in the results, which the nodes of a cluster see, as
long as the call measures."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

FOLDER = ".variables"
_OPTION = "--variable"


def hide(results: Path, arguments: Sequence[str]) -> list[str]:
    """Return the ``arguments`` of the harness with the path of such a file, which is written, in
    the place of the variables among them. Raises OSError."""
    kept: list[str] = []
    named: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == _OPTION:
            named.append(next(words))
        else:
            kept.append(word)
    return [*kept, "--variables", str(_written(results, named))] if named else kept


def _written(results: Path, named: Sequence[str]) -> Path:
    """The file of these variables: the same for the same, whoever is asked."""
    content = json.dumps(dict(pair.split("=", 1) for pair in named), sort_keys=True).encode()
    folder = (results / FOLDER).absolute()
    path = folder / f"{hashlib.sha256(content).hexdigest()[:16]}.json"
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, partial = tempfile.mkstemp(dir=folder)  # mode 0600
        with os.fdopen(file, "wb") as writing:
            writing.write(content)
        os.replace(partial, path)
    return path


def remove(results: Path) -> None:
    """Remove all of these files, behind the last run."""
    shutil.rmtree(results / FOLDER, ignore_errors=True)
