"""Folder that launcher and agents of a run on several nodes share, on the file system of its
output.

They tell each other everything there: the launcher what is to be done (:data:`REQUEST`), each agent
what its node has (:func:`introduction`), the launcher who does what (:data:`SHARES`), each agent
how it went (:func:`result`)."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any, Dict, List, Optional

from core import bounded

REQUEST, SHARES = "request", "shares"


def introduction(index: int) -> str:
    """Return the name of what a node says of itself."""
    return f"node{index}"


def result(index: int) -> str:
    """Return the name of what a node says in the end."""
    return f"result{index}"


def write(folder: str, name: str, content: Dict[str, Any]) -> None:
    """Write a file that appears complete. Raises OSError."""
    path = os.path.join(folder, name)
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


def names(folder: str) -> List[str]:
    """Return the names of the files. Raises OSError.

    A network file system shows files of other nodes up to a minute late, unless one has just
    changed the folder oneself."""
    handle, path = tempfile.mkstemp(prefix=".look", dir=folder)
    os.close(handle)
    os.unlink(path)
    return os.listdir(folder)


def read(folder: str, name: str) -> Optional[Dict[str, Any]]:
    """Return the content of a file; None without it. Raises OSError, ValueError."""
    if name not in names(folder):
        return None
    content: Dict[str, Any] = bounded.read_json(os.path.join(folder, name))
    return content
