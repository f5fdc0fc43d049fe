"""Positions of values in JSON text, for error messages.

Parsers report a position for syntax errors only."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from ...files import json_files

#: Keys and indices that lead from the root of a JSON text to a value.
Keys = tuple[str | int, ...]

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\n\r,:]*")
#: Strings come first, so that their content matches nothing else.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]|-?(?:NaN|Infinity)|-?\d[-+.\deE]*')


def place_of(text: str, keys: Sequence[str | int]) -> int:
    """Return the index of the value at ``keys`` in valid JSON text.

    If a key is missing, return the index of the innermost value on the way to it."""
    at = _behind(text, 0)
    for key in keys:
        inner = _value(text, at, key)
        if inner is None:
            break
        at = inner
    return at


def _value(text: str, at: int, key: str | int) -> int | None:
    """Return the index of the value with this key in the object or list at ``at``.

    The last of duplicate keys counts, as in Python's parser. None if there is no such value."""
    if text[at] not in "{[":
        return None
    is_object, count, wanted = text[at] == "{", 0, None
    at = _behind(text, at + 1)
    while text[at] not in "}]":
        name: str | int = count
        if is_object:
            name, at = _DECODER.raw_decode(text, at)
            at = _behind(text, at)
        wanted = at if name == key else wanted
        at, count = _behind(text, _DECODER.raw_decode(text, at)[1]), count + 1
    return wanted


def _behind(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return match.end() if match else at


def place_of_refused(text: str) -> int | None:
    """Return the index of the first token that :func:`json_files.decode` refuses, else None.

    Refused are numbers out of range and nesting that is too deep. ``text`` is complete JSON."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        depth += (first in "[{") - (first in "]}")
        if depth > json_files.DEEPEST or (first not in '"[]{}' and _is_refused(token[0])):
            return token.start()
    return None


def _is_refused(number: str) -> bool:
    try:
        json_files.decode(number.encode())
    except ValueError:
        return True
    return False
