"""Read JSON files from anywhere; a bad file does not stop the reading of others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from core import bounded
from core.text import printable
from pydantic_core import from_json

from .problem import Problem, cause


def below(root: Path) -> tuple[list[Path], list[Problem]]:
    """Return the visible ``*.json`` files below ``root`` in a fixed order, and unreadable folders.

    Both are empty if there is no such folder. A hidden name is a file still being written. Links to
    folders are followed.
    """
    files: list[Path] = []
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(origin_of(Path(error.filename or root), root), cause(error)))

    walk = os.walk(root, onerror=unreadable, followlinks=True) if root.is_dir() else ()
    for folder, folders, names in walk:
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        found = (name for name in sorted(names) if not name.startswith("."))
        files += [Path(folder, name) for name in found if name.endswith(".json")]
    return files, problems


def origin_of(path: Path, root: Path) -> str:
    """Return the printable path of a file below ``root``."""
    within = os.path.join(root, "")
    # pathlib takes ten times as long, which matters for thousands of files.
    text = os.fspath(path)
    below = text.removeprefix(within) if text.startswith(within) else path.relative_to(root)
    return printable(str(below))


def read(path: Path) -> Any:
    """Return the value of a JSON file. Raises OSError if it cannot be read, and ValueError as
    :func:`decode`."""
    return decode(bounded.read_bytes(path))


def decode(content: bytes) -> Any:
    """Return the value of a JSON text, with all text in it made printable.
    Raises ValueError for invalid JSON."""
    try:
        value = from_json(content, allow_inf_nan=False)
    except ValueError:
        # The slower decoder accepts half of a surrogate pair, which a variable may hold, and names
        # the fault.
        return _decode_slowly(content)
    # Without an escape or DEL, ASCII is printable: JSON allows no control characters.
    is_plain = content.isascii() and b"\\" not in content and b"\x7f" not in content
    return value if is_plain else _printable(value)


def _decode_slowly(content: bytes) -> Any:
    def refuse(name: str) -> float:
        raise ValueError(f"holds the number {name}, which JSON does not have")

    try:
        return _printable(json.loads(content.decode("utf-8"), parse_constant=refuse))
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is not complete JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _printable(value: Any) -> Any:
    """Return ``value`` with all text in it made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(entry) for key, entry in value.items()}
    return [_printable(entry) for entry in value] if isinstance(value, list) else value
