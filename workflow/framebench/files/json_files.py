"""JSON files of a folder: reading them, their problems, and the names of attempts.

A bad file does not stop the reading of others."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from core import bounded
from core.text import printable, shorten
from pydantic_core import from_json

# Attempts are NAME, NAME-retry1, NAME-retry2 .., so that no earlier file is replaced.
_NAME = re.compile(r"(.+?)(?:-retry([0-9]+))?")
_REPEAT = re.compile(r"r([0-9]+)(?:-retry([0-9]+))?")


class Problem(NamedTuple):
    """Invalid file or row: its place and the problem."""

    origin: str
    message: str


def cause(error: Exception) -> str:
    """Return the message of an error without its path, which is the problem's origin."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return shorten(str(error), 1000)


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
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _printable(value: Any) -> Any:
    """Return ``value`` with all text in it made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(entry) for key, entry in value.items()}
    return [_printable(entry) for entry in value] if isinstance(value, list) else value


def attempt_name(name: str, attempt: int) -> str:
    """Return the name of an attempt; attempt 0 has the plain name."""
    return f"{name}-retry{attempt}" if attempt else name


def split_attempt(stem: str) -> tuple[str, int]:
    """Split a stem into plain name and number of the attempt: ``b8-retry2`` -> (b8, 2)."""
    match = _NAME.fullmatch(stem)
    return (match[1], int(match[2] or 0)) if match else (stem, 0)


def repeat_and_attempt(stem: str) -> tuple[int, int] | None:
    """Parse the name of a run's record: ``r3-retry2`` -> (3, 2); None for other names."""
    match = _REPEAT.fullmatch(stem)
    return (int(match[1]), int(match[2] or 0)) if match else None


def newest_attempt(folder: Path, name: str, read: Callable[[Path], Any]) -> tuple[str, Any]:
    """Return the name (without ``.json``) of the newest attempt below ``folder`` for which ``read``
    returns a value, and that value. Without one, return the next free name and None."""
    attempts = 0
    while os.path.lexists(folder / f"{attempt_name(name, attempts)}.json"):
        attempts += 1
    for attempt in reversed(range(attempts)):
        tried = attempt_name(name, attempt)
        if (found := read(folder / f"{tried}.json")) is not None:
            return tried, found
    return attempt_name(name, attempts), None
