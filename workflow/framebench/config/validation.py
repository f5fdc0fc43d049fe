"""What is wrong with a configuration, in words: the file, the key, what was found and what is
allowed. Imports no library: what only reads results takes its errors from here, too."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..files.problem import shorten

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

#: By pydantic's kinds of errors, those that no type of ours has words for.
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
    """Bad input; the message is meant for the user and names file, key, found and allowed."""


#: Lines of one message.
_MOST_FAULTS = 20


class NotAllowed(ValueError):
    """A value that may not stand where it does. ``allowed``: what may, in words. ``shown``: what is
    shown instead of the value; ``key``: where it stands, below the value that was looked at."""

    def __init__(self, allowed: str, shown: str = "", key: str = "") -> None:
        super().__init__(f"allowed: {allowed}")
        self.allowed, self.shown, self.key = allowed, shown, key

    def line(self, key: str, value: Any) -> str:
        """``key: found X; allowed: Y``."""
        key = join(key, self.key) if self.key else key
        return f"{key or 'the file'}: found {self.shown or show(value)}; allowed: {self.allowed}"


class NotAmong(NotAllowed):
    """A name that is none of the ``names`` there are."""

    def __init__(self, value: Any, names: Sequence[str]) -> None:
        allowed = ", ".join(names) or "nothing (none is installed)"
        super().__init__(allowed, show(value) + did_you_mean(value, names))


class UnknownKey(NotAllowed):
    """A key that a mapping does not have."""

    def __init__(self, key: Any, keys: Sequence[str]) -> None:
        super().__init__(", ".join(keys), key=str(key)[:80])
        self.hint = did_you_mean(key, keys)

    def line(self, key: str, value: Any) -> str:
        return f"unknown key {join(key, self.key)}{self.hint}; allowed: {self.allowed}"


class MissingKey(NotAllowed):
    """A key that a mapping must have, unless it has the ``other`` one."""

    def __init__(self, key: str, other: str) -> None:
        super().__init__(other, key=key)

    def line(self, key: str, value: Any) -> str:
        missing = f"key {join(key, self.key)} is missing"
        return f"{missing}; allowed: this, or {join(key, self.allowed)}"


class InPart(NotAllowed):
    """What is wrong within a part that was checked by itself, in the ``lines`` of :func:`explain`
    with the part's key as their source."""

    def __init__(self, lines: str) -> None:
        super().__init__("")
        self.lines = lines.splitlines()

    def line(self, key: str, value: Any) -> str:
        return "; ".join(join(key, line) for line in self.lines)


def explain(
    errors: Sequence[ErrorDetails], data: Any, source: str, sources: Mapping[str, str]
) -> str:
    """One line for each of pydantic's errors about ``data``, which comes from ``source``; keys of
    ``sources`` come from elsewhere."""
    reaches = [reach(error, data) for error in errors]
    lines = []
    for error, own in zip(errors, reaches, strict=True):
        # Of a union, what the branch says that was meant: the one that led deepest.
        if not any(len(other) > len(own) and other[: len(own)] == own for other in reaches):
            lines.append(f"{sources.get(str((*own, '')[0]), source)}: {_line(error, data)}")
    faults = [*dict.fromkeys(lines)]
    more = [f"and {len(faults) - _MOST_FAULTS} more"] if len(faults) > _MOST_FAULTS else []
    return "\n".join([*faults[:_MOST_FAULTS], *more])


def reach(error: ErrorDetails, data: Any) -> tuple[Any, ...]:
    """How far an error leads into the data; one about a key is deeper than the mapping."""
    about_key = error["type"] == "missing" or error["loc"][-1:] == ("[key]",)
    unknown = isinstance(_cause(error), (UnknownKey, MissingKey))
    return (*_path(error, data), "") if about_key or unknown else _path(error, data)


def _path(error: ErrorDetails, data: Any) -> tuple[Any, ...]:
    """The keys and positions that lead to the value: pydantic's location has names of branches of
    unions among them."""
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
    if isinstance(cause, NotAllowed):
        return cause.line(key, error["input"])
    return NotAllowed(_ALLOWED.get(error["type"], error["msg"])).line(key, error["input"])


def join(key: str, name: Any) -> str:
    """The key ``name`` of the mapping at ``key``."""
    return f"{key}.{name}" if key else str(name)


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression that a user wrote. Raises ValueError, with a short reason, for a
    text that is none and for one that Python cannot compile."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(shorten(str(error))) from None
    except (RecursionError, OverflowError):
        raise ValueError("too deep or too long to be compiled") from None


def show(value: Any) -> str:
    """As it stands in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(value: Any, names: Iterable[Any]) -> str:
    """A hint for a near miss, else nothing."""
    close = difflib.get_close_matches(str(value), [str(name) for name in names], n=1)
    return f" (did you mean {close[0]}?)" if close else ""
