"""A file of another tool, read within bounds, with errors that name its lines."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ..files import bounded, json_files
from ..files.problem import cause
from ..files.text import printable
from ..records.run import RecordsError
from .json_places import Keys, place_of, place_of_refused

#: Bytes of one line; the longest known, of a node with 8 GPUs in SuperBench, has 64 KiB.
LONGEST_LINE = 16 * 2**20
#: Rows of all files together.
MOST_ROWS = 1_000_000


class Refused(RecordsError):
    """A file is not of the format, or not whole; the message names file and line."""


@dataclass(frozen=True)
class Source:
    """One file. ``directionless``: names of figures in it of which nothing tells whether higher or
    lower is better, so that they are not taken; whoever reads the file adds to them. ``left_out``:
    reason and name of each figure that is not taken."""

    path: Path
    directionless: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out(self, name: str, reason: str) -> None:
        """Note a figure that is not taken."""
        self.left_out.append((reason, name))

    def refuse(self, message: str, place: int | Keys | None = None) -> NoReturn:
        """Raise :class:`Refused`. ``place``: a line; of a file of JSON the keys of a value."""
        if isinstance(place, tuple):
            text = self._content().decode("utf-8")
            self._refuse_at(message, text, place_of(text, place))
        where = f"{self.path}, line {place}" if place else f"{self.path}"
        raise Refused(f"import: {where}: {message}")

    def _refuse_at(self, message: str, text: str, index: int) -> NoReturn:
        line = text.count("\n", 0, index) + 1
        column = index - text.rfind("\n", 0, index)
        raise Refused(f"import: {self.path}, line {line}, column {column}: {message}")

    def lines(self) -> Iterator[tuple[int, str]]:
        """Number and text of each line that is not blank. The last one must be ended like all
        others: one that was cut off may be a complete line of less."""
        content = self._content()
        if content and not content.endswith(b"\n"):
            last = content.count(b"\n") + 1
            self.refuse("found a last line without an end; allowed: a whole file", last)
        for number, line in enumerate(content.split(b"\n"), 1):
            if len(line) > LONGEST_LINE:
                self.refuse(f"has {len(line)} bytes; allowed: at most {LONGEST_LINE}", number)
            try:
                text = line.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                self.refuse(f"is no UTF-8 text (byte {error.start + 1})", number)
            if text:
                yield number, printable(text)

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Number and value of each line, which must be a JSON object."""
        for number, line in self.lines():
            yield number, self.object_of(line, number)

    def object_of(self, text: str, line: int) -> dict[str, Any]:
        """The JSON object that a line, or the rest of it, is."""
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            at = f"{error.msg} at its character {error.pos + 1}"
            self.refuse(f"is no JSON object ({at})", line)
        except (ValueError, RecursionError) as error:
            self.refuse(f"is no JSON object ({error})", line)
        if not isinstance(value, dict):
            self.refuse(f"found {_shown(value)}; allowed: a JSON object", line)
        return value

    def json(self, constants: bool = False) -> dict[str, Any]:
        """The whole file as a JSON object. ``constants``: NaN and Infinity, which JSON does not
        have, may stand in it."""
        content = self._content()
        try:
            value = json.loads(content.decode("utf-8")) if constants else json_files.decode(content)
        except (ValueError, RecursionError) as error:
            self._refuse_json(content, error)
        if not isinstance(value, dict):
            self.refuse(f"found {_shown(value)}; allowed: a JSON object", ())
        return value

    def _refuse_json(self, content: bytes, error: ValueError | RecursionError) -> NoReturn:
        """Of what is no JSON that can be read: with the place."""
        why = error if isinstance(error, UnicodeDecodeError) else error.__cause__ or error
        if isinstance(why, UnicodeDecodeError):
            line = content.count(b"\n", 0, why.start) + 1
            self.refuse(f"is no UTF-8 text (byte {why.start + 1} of the file)", line)
        text = content.decode("utf-8")
        if isinstance(why, json.JSONDecodeError):
            self._refuse_at(f"is no complete JSON ({why.msg})", text, why.pos)
        index = place_of_refused(text)
        if index is None:
            self.refuse(str(error))
        self._refuse_at(str(error), text, index)

    def need(self, found: Mapping[str, Any], kinds: Mapping[str, type | tuple[type, ...]]) -> None:
        """Refuse a file whose object has not these keys with values of these types: it is of
        another tool."""
        wrong = [key for key, kind in kinds.items() if not isinstance(found.get(key), kind)]
        if wrong:
            keys = ", ".join(map(repr, list(found)[:6])) or "nothing"
            self.refuse(f"is of another format: {', '.join(wrong)} missing or of another type "
                        f"(it has {keys})", (wrong[0],))  # fmt: skip

    def number(self, value: Any, what: str, place: int | Keys | None = None) -> float:
        """A finite number, or the file is refused. ``place``: as for :meth:`refuse`."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what}: found {_shown(value)}; allowed: a number", place)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(f"{what}: found {number}; allowed: a finite number", place)
        return number

    def _content(self) -> bytes:
        try:
            return bounded.read_bytes(self.path)
        except (OSError, ValueError) as error:
            self.refuse(cause(error))


def sources(path: Path, suffixes: Sequence[str]) -> list[Source]:
    """The file at ``path``, or those below it with one of these ``suffixes``, in a fixed order."""
    if not path.is_dir():
        return [Source(path)]
    files = sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and file.name.endswith(tuple(suffixes)) and not file.name.startswith(".")
    )
    if not files:
        raise Refused(f"import: {path}: holds no file that ends with {' or '.join(suffixes)}")
    return [Source(file) for file in files]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
