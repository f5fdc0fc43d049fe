"""Faults of a configuration as text: file, key, found value and allowed values.

Imports no library, because commands that only read results use these errors too.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from core.text import shorten

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: Allowed values by pydantic's kind of error, for types without their own text.
_ALLOWED = {
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "list_type": "a list",
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
}


class ConfigError(Exception):
    """Invalid input; the message is for the user and names file, key, found and allowed values."""


#: Most lines of a message.
_MOST_FAULTS = 20
#: Names that other programs use, and ours.
OTHER_WORDS = {
    "gpu": "cuda",
    "nvidia": "cuda",
    "tf": "tensorflow",
    "tf1": "tensorflow1",
    "torch": "pytorch",
    "paddlepaddle": "paddle",
    "float32": "fp32",
    "mixed": "amp",
}


class NotAllowed(ValueError):
    """A value that is not allowed. ``allowed``: allowed values, as text; ``shown``: text instead of
    the value; ``key``: place below the checked value."""

    def __init__(self, allowed: str, shown: str = "", key: str = "") -> None:
        super().__init__(f"allowed: {allowed}")
        self.allowed, self.shown, self.key = allowed, shown, key

    def line(self, key: str, value: Any) -> str:
        """Return ``key: found X; allowed: Y``."""
        key = join(key, self.key) if self.key else key
        return f"{key or 'the file'}: found {self.shown or show(value)}; allowed: {self.allowed}"


class NotAmong(NotAllowed):
    """A name that is not one of ``names``."""

    def __init__(self, value: Any, names: Sequence[str]) -> None:
        allowed = ", ".join(names) or "nothing (none is installed)"
        super().__init__(allowed, show(value) + did_you_mean(value, names))


class UnknownKey(NotAllowed):
    """A key that a mapping may not have."""

    def __init__(self, key: Any, keys: Sequence[str], elsewhere: str = "") -> None:
        """``elsewhere``: where the key belongs; "" for nowhere known."""
        super().__init__(", ".join(keys), key=str(key)[:80])
        self.hint = f" (did you mean {elsewhere}?)" if elsewhere else did_you_mean(key, keys)

    def line(self, key: str, value: Any) -> str:
        return f"unknown key {join(key, self.key)}{self.hint}; allowed: {self.allowed}"


class MissingKey(NotAllowed):
    """A required key that is missing, unless the mapping has the ``other`` one."""

    def __init__(self, key: str, other: str) -> None:
        super().__init__(other, key=key)

    def line(self, key: str, value: Any) -> str:
        missing = f"key {join(key, self.key)} is missing"
        return f"{missing}; allowed: this, or {join(key, self.allowed)}"


def explain(
    errors: Sequence[ErrorDetails], data: Any, source: str, sources: Mapping[str, str]
) -> str:
    """Return a line for each of pydantic's errors about ``data``, read from ``source``.

    ``sources``: origin of keys from elsewhere.
    """
    reaches = [reach(error, data) for error in errors]
    lines = []
    for error, own in zip(errors, reaches, strict=True):
        # For a union, report the branch that got deepest: it was most likely meant.
        if not any(len(other) > len(own) and other[: len(own)] == own for other in reaches):
            lines.append(f"{sources.get(str((*own, '')[0]), source)}: {_line(error, data)}")
    faults = [*dict.fromkeys(lines)]
    more = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
    return "\n".join([*faults[:_MOST_FAULTS], *more])


def reach(error: ErrorDetails, data: Any) -> tuple[Any, ...]:
    """Return the path that an error leads to in the data; one about a key is deeper than the
    mapping."""
    about_key = error["type"] == "missing" or error["loc"][-1:] == ("[key]",)
    unknown = isinstance(_cause(error), (UnknownKey, MissingKey))
    return (*_path(error, data), "") if about_key or unknown else _path(error, data)


def _path(error: ErrorDetails, data: Any) -> tuple[Any, ...]:
    """Return the keys and positions of an error's value.

    Pydantic's location also has the names of union branches.
    """
    location = error["loc"][:-2] if error["loc"][-1:] == ("[key]",) else error["loc"]
    path = []
    for part in location:
        if isinstance(data, Mapping) and part in data:
            data = data[part]
            path.append(part)
        elif isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
            path.append(part)
    return tuple(path)


def _cause(error: ErrorDetails) -> Any:
    return error.get("ctx", {}).get("error")


def _line(error: ErrorDetails, data: Any) -> str:
    key = ""
    for part in _path(error, data):
        key = f"{key}[{part}]" if isinstance(part, int) else join(key, part)
    if error["type"] == "missing":
        return f"key {join(key, error['loc'][-1])} is missing"
    cause = _cause(error)
    if error["type"] == "literal_error":
        cause = NotAmong(error["input"], re.findall("'([^']*)'", error["ctx"]["expected"]))
    if isinstance(cause, NotAllowed):
        return cause.line(key, error["input"])
    return NotAllowed(_ALLOWED.get(error["type"], error["msg"])).line(key, error["input"])


def join(key: str, name: Any) -> str:
    """Return the key ``name`` of the mapping at ``key``."""
    return f"{key}.{name}" if key else str(name)


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression of a user. Raises ValueError with a short reason."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(shorten(str(error))) from None
    except (RecursionError, OverflowError):
        raise ValueError("too deep or too long to be compiled") from None


def show(value: Any) -> str:
    """Return a value for a message, long ones cut at the end."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(value: Any, names: Iterable[Any]) -> str:
    """Return a hint for a near miss or another word for a name, else ""."""
    known = [str(name) for name in names]
    other = OTHER_WORDS.get(str(value).lower())
    close = [other] if other in known else difflib.get_close_matches(str(value), known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""
