"""Credentials by name and shape: the lists in ``scripts/secrets.json``, also read by the driver
(``config/variables.py``)."""

from __future__ import annotations

import json
import os
import re
import stat
from typing import Any, Dict, Optional

_SCRIPTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


def _lists() -> Dict[str, Any]:
    with open(os.path.join(_SCRIPTS, "secrets.json"), encoding="utf-8") as file:
        lists: Dict[str, Any] = json.load(file)
    return lists


_LISTS = _lists()
_NAMES, _HARMLESS = (re.compile(_LISTS[key]) for key in ("names", "harmless_names"))
#: Largest number of bytes read from a file of variables.
_LARGEST = 2**20
_SHAPES = {kind: re.compile(shape) for kind, shape in _LISTS["shapes"].items()}


def kind_of(text: str) -> str:
    """Return the kind of credential that ``text`` contains; "" for none."""
    return next((kind for kind, shape in _SHAPES.items() if shape.search(text)), "")


def is_secret(name: str, value: str = "") -> bool:
    """Return whether a variable of this name or value holds a credential."""
    is_named = _NAMES.search(name) and not _HARMLESS.search(name)
    return bool(is_named or kind_of(value))


def private_variables(path: Optional[str]) -> Dict[str, str]:
    """Return the variables in a private file; {} for None.

    Raises OSError, and ValueError for a file that others can access or with other content.
    """
    if path is None:
        return {}
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), encoding="utf-8") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o077:
            raise ValueError(
                f"{path}: found mode {stat.filemode(status.st_mode)}; allowed: a regular file that "
                "only its owner can read (chmod 600)"
            )
        if status.st_uid != os.geteuid():
            raise ValueError(f"{path}: found a file of user {status.st_uid}; allowed: your own")
        content = json.loads(file.read(_LARGEST))
    variables: Dict[str, str] = content if isinstance(content, dict) else {"": ""}
    if not all(name.isidentifier() and isinstance(value, str) for name, value in variables.items()):
        raise ValueError(f"{path}: found no object of names and texts; allowed: one, as JSON")
    return variables
