"""Values that users write, in files and on command lines: their checks, and their faults as text
with file, key, found value and allowed values.

Imports no library, because commands that only read results use these errors too.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from core.limits import parse_limit

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

T = TypeVar("T")


class ConfigError(Exception):
    """Invalid input; the message is for the user and names file, key, found and allowed values."""


class NotAllowed(ValueError):
    """A value that is not allowed. ``allowed``: allowed values, as text; ``shown``: text instead of
    the value; ``key``: path from the checked value to this one."""

    def __init__(self, allowed: str, shown: str = "", key: str = "") -> None:
        super().__init__(f"allowed: {allowed}")
        self.allowed, self.shown, self.key = allowed, shown, key

    def line(self, key: str, value: Any) -> str:
        """Return ``key: found X; allowed: Y``."""
        key = ".".join(filter(None, (key, self.key)))
        return f"{key or 'the file'}: found {self.shown or show(value)}; allowed: {self.allowed}"


class NotAmong(NotAllowed):
    """A name that is not one of ``names``. ``kind``: noun before the name in the message."""

    def __init__(self, value: Any, names: Sequence[str], kind: str = "") -> None:
        allowed = ", ".join(names) or "nothing (none is installed)"
        super().__init__(allowed, kind + show(value) + did_you_mean(value, names))


def explain(invalid: ValidationError, data: Any, source: str) -> str:
    """Return a line for each fault that pydantic found in ``data``, read from ``source``.

    A value that fits no branch of a union has one line with the allowed values of all branches, or,
    if the value has the type of some branch, the fault that this branch found inside.
    """
    faults: dict[tuple[Any, ...], list[ErrorDetails]] = defaultdict(list)
    for error in invalid.errors(include_url=False):
        faults[_path(error, data)].append(error)
    return "\n".join(
        f"{source}: {line}"
        for path, errors in faults.items()
        if not any(len(other) > len(path) and other[: len(path)] == path for other in faults)
        for line in dict.fromkeys(_lines(_key(path), errors))
    )


def _path(error: ErrorDetails, data: Any) -> tuple[Any, ...]:
    """Return the keys and indices that lead to an error's value or to a missing key. Pydantic's
    location also has the names of union branches."""
    path = []
    for part in error["loc"]:
        if isinstance(data, Mapping) and part in data:
            data = data[part]
        elif isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
        else:
            continue
        path.append(part)
    return (*path, error["loc"][-1]) if error["type"] == "missing" else tuple(path)


def _lines(key: str, errors: Sequence[ErrorDetails]) -> Iterator[str]:
    """Yield a line for each fault of one value; faults of its type share one line."""
    allowed = []
    for error in errors:
        cause = error.get("ctx", {}).get("error")
        if error["type"] == "missing":
            yield f"key {key} is missing"
        elif isinstance(cause, NotAllowed):
            yield cause.line(key, error["input"])
        else:
            allowed.append(_allowed_by_pydantic(error))
    if len(allowed) == len(errors):  # otherwise the value has the type of some union branch
        shown = next((fault.shown for fault in allowed if fault.shown), "")
        words = ", or ".join(dict.fromkeys(fault.allowed for fault in allowed))
        yield NotAllowed(words, shown).line(key, errors[0]["input"])


def _allowed_by_pydantic(error: ErrorDetails) -> NotAllowed:
    """Return what pydantic allows in its own words, such as ``greater than 0``."""
    if error["type"] == "literal_error":
        return NotAmong(error["input"], re.findall("'([^']*)'", error["ctx"]["expected"]))
    if error["type"] in ("dict_type", "model_type"):
        return NotAllowed("a mapping")
    words = re.sub(r"^\w+ should (be|have|match) ", "", error["msg"])
    return NotAllowed(words.partition(", unable to parse")[0])


def _key(path: Iterable[Any]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{str(part)[:80]}" for part in path)
    return "".join(parts).removeprefix(".")


def show(value: Any) -> str:
    """Return a value for a message, long ones cut at the end."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def did_you_mean(value: Any, names: Iterable[Any]) -> str:
    """Return a hint for a near miss of a name, else ""."""
    close = difflib.get_close_matches(str(value), [str(name) for name in names], n=1)
    return f" (did you mean {close[0]}?)" if close else ""


# ---- checks, which raise NotAllowed --------------------------------------------------------------


def argument(read: Callable[[str], T]) -> Callable[[str], T]:
    """Return a type function for argparse, whose errors show the allowed values."""

    def parse(text: str) -> T:
        try:
            return read(text)
        except NotAllowed as error:
            shown = f"found {error.shown or show(text)}; allowed: {error.allowed}"
            raise argparse.ArgumentTypeError(shown) from None

    return parse


def share(written: Any) -> float:
    """Return a fraction, written as ``5%`` or ``0.05``."""
    text = str(written)
    try:
        part = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        part = 0.0
    if not 0 < part < 1:
        raise NotAllowed("a percentage like 5%, or a number like 0.05, above 0 and below 100 %")
    return part


def memory_limit(written: Any) -> str | None:
    """Return a size or share in the harness's form; None for ``auto``."""
    if written == "auto":
        return None
    try:
        parse_limit(str(written))
    except ValueError:
        raise NotAllowed(
            "auto, a size above 0 like 16GiB (or KiB, MiB, TiB), or a share of the machine's "
            "memory like 80%, up to 100%"
        ) from None
    return str(written)


def path(written: Any) -> Path:
    """Return a path with ``~`` expanded, existing or not."""
    if not isinstance(written, str) or not written:
        raise NotAllowed("a text that is not empty")
    return Path(os.path.expanduser(written))


def folder(written: Any) -> Path:
    """Return the path of a folder, existing or not."""
    named = path(written)
    # Snakemake reads these characters as wildcards, shells as redirections.
    if re.search("[{}<>]", str(written)):
        raise NotAllowed("a path without { } < >")
    if any(os.path.exists(part) and not part.is_dir() for part in (named, *named.parents)):
        raise NotAllowed("a folder")
    return named


def existing_folder(written: Any) -> Path:
    named = path(written)
    if not os.path.isdir(named):
        raise NotAllowed("the path of a folder that exists")
    return named


def records(text: str) -> Path:
    """Return the path of records: ``runs`` in a results folder, else the path itself."""
    named = Path(text)
    return named / "runs" if (named / "runs").is_dir() else named


def record_set(written: Any) -> Path:
    """Return the path of records that exist."""
    named = path(written)
    if not os.path.exists(named):
        raise NotAllowed("a folder of records or a CSV of runs that exists")
    return records(str(named))


@dataclass(frozen=True)
class RecordSource:
    """Record set to compare: all runs, or the runs of one variant."""

    path: Path
    variant: str

    def __str__(self) -> str:
        return f"{self.path}@{self.variant}" if self.variant else str(self.path)


def side(text: str) -> RecordSource:
    """Return one side of a comparison, ``PATH`` or ``PATH@VARIANT``."""
    named, separator, variant = text.rpartition("@")
    if not separator or os.path.exists(text):
        named, variant = text, ""
    return RecordSource(record_set(named), variant)
