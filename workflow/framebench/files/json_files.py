"""Bounded reading of JSON files from anywhere: none of them stops the reading of others."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core import bounded
from core.text import printable
from pydantic_core import from_json

from .problem import Problem, cause

#: Deepest nesting, as in pydantic's parser; a record has 7 levels.
DEEPEST = 201
#: Most characters of one text; a traceback has some thousands.
LONGEST_TEXT = 2**20
#: Largest integer: kernel counters have 64 bits.
LARGEST_INTEGER = 2**64 - 1


def below(root: Path) -> tuple[list[Path], list[Problem]]:
    """Return the visible ``*.json`` files below ``root`` in a fixed order, and unreadable folders.

    Both are empty if there is no such folder. A hidden name is a file still being written. Links to
    folders are followed; each folder is read once.
    """
    files: list[Path] = []
    problems: list[Problem] = []
    seen: set[str] = set()

    def unreadable(error: OSError) -> None:
        problems.append(Problem(origin_of(Path(error.filename or root), root), cause(error)))

    walk = os.walk(root, onerror=unreadable, followlinks=True) if root.is_dir() else ()
    for folder, folders, names in walk:
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            message = "leads to a folder that is read already; each is read once"
            problems.append(Problem(origin_of(Path(folder), root), message))
            continue
        seen.add(real)
        visible = [name for name in sorted(folders) if not name.startswith(".")]
        # Real folders first: records are named after them.
        folders[:] = sorted(visible, key=lambda name: os.path.islink(os.path.join(folder, name)))
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


def _refuse_constant(name: str) -> float:
    raise ValueError(f"holds the number {name}, which JSON does not have")


def _bounded_float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("holds a number that is too large; allowed: up to 1.7e308")
    return value


def _bounded_integer(digits: str) -> int:
    # Python refuses to parse thousands of digits.
    value = int(digits) if len(digits) <= 30 else LARGEST_INTEGER + 1
    if abs(value) > LARGEST_INTEGER:
        shown = digits if len(digits) <= 30 else f"{digits[:20]}.. ({len(digits)} digits)"
        raise ValueError(f"holds the integer {shown}; allowed: up to {LARGEST_INTEGER}")
    return value


#: Map all digits to 0, and all neighbours of a number to a blank.
_OUTLINE = bytes.maketrans(b"0123456789E:,[]{}-\t\n\r", b"0000000000e          ")
_LARGE_EXPONENT = re.compile(rb"e000[0e]* ")
_LARGE_INTEGER = b" " + b"0" * 20


def _is_usual(content: bytes) -> bool:
    """Return whether a JSON text surely has no unprintable text and no number out of bounds.
    In ASCII, only text with an escape or DEL is unprintable: control characters are not allowed."""
    if not content.isascii() or b"\\" in content or b"\x7f" in content:
        return False
    outline = b" " + content.translate(_OUTLINE, b"+") + b" "
    return _LARGE_INTEGER not in outline and not _LARGE_EXPONENT.search(outline)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"gives the key {_printable(repeated)!r} twice; allowed: each once")
    return members


# Created once: json.loads with arguments creates a decoder per file, which takes longer than
# reading the file.
_LIMITS: dict[str, Any] = {
    "parse_constant": _refuse_constant,
    "parse_float": _bounded_float,
    "parse_int": _bounded_integer,
}
_DECODER = json.JSONDecoder(**_LIMITS)
_STRICT_DECODER = json.JSONDecoder(**_LIMITS, object_pairs_hook=_unique_keys)


def read(path: Path) -> Any:
    """Return the value of a JSON file, which may be written by hand.
    Raises OSError if it cannot be read, and ValueError as :func:`decode` and for a repeated key."""
    return decode_slowly(bounded.read_bytes(path), _STRICT_DECODER)


def decode(content: bytes) -> Any:
    """Return the value of a JSON text, with all text in it made printable.
    Raises ValueError for invalid JSON, more than DEEPEST levels, a text longer than LONGEST_TEXT,
    or a number out of bounds."""
    if _is_usual(content):
        if len(content) > LONGEST_TEXT:
            for text in content.split(b'"')[1::2]:  # without escapes every other piece is a text
                _check_length(len(text))
        # Ten times as fast as the bounded standard library, and as strict.
        try:
            return from_json(content, allow_inf_nan=False)
        except ValueError:
            pass  # decode again for our own message
    return decode_slowly(content)


def decode_slowly(content: bytes, decoder: json.JSONDecoder = _DECODER) -> Any:
    """Decode any JSON text with ``decoder``; see :func:`decode`."""
    try:
        text = content.decode("utf-8")
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is no complete JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(f"is no UTF-8 text (byte {error.start})") from error
    except RecursionError as error:
        raise ValueError(f"is nested too deeply; allowed: {DEEPEST} levels") from error
    _check_depth(value)
    return _printable(value)


def object_at(within: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the object at a key; {} if there is none."""
    value = within.get(key)
    return value if isinstance(value, dict) else {}


def _check_depth(value: Any) -> None:
    containers: list[Any] = [[value]]
    for _ in range(DEEPEST + 1):
        containers = [
            entry
            for container in containers
            for entry in (container.values() if type(container) is dict else container)
            if type(entry) is dict or type(entry) is list
        ]
        if not containers:
            return
    raise ValueError(f"is nested too deeply; allowed: {DEEPEST} levels")


def _check_length(length: int) -> None:
    if length > LONGEST_TEXT:
        raise ValueError(f"holds a text of {length} characters; allowed: at most {LONGEST_TEXT}")


def _printable(value: Any) -> Any:
    """Return ``value`` with all text in it made printable."""
    if isinstance(value, str):
        _check_length(len(value))
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable(entry) for key, entry in value.items()}
    return [_printable(entry) for entry in value] if isinstance(value, list) else value
