"""Private files that pass environment variables to ranks.

Command lines are readable by every user of a machine, these files only by their owner. They lie in
the results, which all nodes of a cluster see, until the call ends.
"""

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
    """Write the variables among ``arguments`` to a private file.

    Returns the arguments with the option ``--variables PATH`` instead. Raises OSError.
    """
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
    """Return the path of a file with these variables, which depends on their content only."""
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
    """Remove all variable files after the last run."""
    shutil.rmtree(results / FOLDER, ignore_errors=True)
