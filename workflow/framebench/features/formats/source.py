"""Bounded reading of another tool's file, with errors that name line and column."""

from __future__ import annotations

import codecs
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from core import bounded
from core.text import printable

from ...files import json_files
from ...files.problem import cause
from ...files.text import cut
from ...records.run import RecordsError
from .json_places import Keys, place_of, place_of_refused

#: Most bytes of one line. The longest known has 64 KiB: SuperBench, one node with 8 GPUs.
LONGEST_LINE = 16 * 2**20
#: Most rows of all files together.
MOST_ROWS = 1_000_000


#: Reason for skipping a figure whose name and unit do not tell the direction.
NO_DIRECTION = "it is not known whether higher or lower is better"


class FormatError(RecordsError):
    """Raised if a file has another format or is incomplete; the message names file and line."""


@dataclass(frozen=True)
class ImportedFile:
    """A file to import.

    ``is_one_of_many``: found in a folder that was given. ``left_out``: reason and name of each
    figure that the reader skipped."""

    path: Path
    is_one_of_many: bool = False
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out(self, name: str, reason: str) -> None:
        """Record that a figure is skipped, with the reason."""
        self.left_out.append((reason, name))

    @property
    def its_name(self) -> dict[str, str]:
        """File name as a setting, for formats without settings: two files are two cases."""
        return {"file": "/".join(self.path.absolute().parts[-2:])}

    def refuse(self, message: str, location: int | Keys | None = None) -> NoReturn:
        """Raise :class:`FormatError`.

        ``location``: number of a line or, in a JSON file, the keys of a value."""
        if isinstance(location, tuple):
            text = self.content.decode("utf-8")
            self._refuse_at(message, text, place_of(text, location))
        where = f"{self.path}, line {location}" if location else f"{self.path}"
        raise FormatError(f"import: {where}: {cut(message, 1000)}")

    def _refuse_at(self, message: str, text: str, index: int) -> NoReturn:
        line = text.count("\n", 0, index) + 1
        column = index - text.rfind("\n", 0, index)
        raise FormatError(
            f"import: {self.path}, line {line}, column {column}: {cut(message, 1000)}"
        )

    def lines(self, of_log: bool = False) -> Iterator[tuple[int, str]]:
        """Yield number and text of each line that is not blank.

        ``of_log``: replace bytes that are not UTF-8, since several programs write into a log.
        Otherwise such a file is refused."""
        for number, line in enumerate(self.content.split(b"\n"), 1):
            if len(line) > LONGEST_LINE:
                self.refuse(f"has {len(line)} bytes; allowed: at most {LONGEST_LINE}", number)
            try:
                text = line.decode("utf-8", "replace" if of_log else "strict").strip()
            except UnicodeDecodeError as error:
                self.refuse(f"is no UTF-8 text (byte {error.start + 1})", number)
            if text:
                yield number, printable(text)

    def is_cut_off(self, line: int) -> bool:
        """Return whether ``line`` is the last and lacks its newline, as if interrupted."""
        return self._line_ends == line - 1

    @cached_property
    def _line_ends(self) -> int:
        return self.content.count(b"\n")

    def objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield number and value of each line. Raises FormatError if one is no JSON object."""
        for number, line in self.lines():
            yield number, self.object_of(line, number)

    def object_of(self, text: str, line: int) -> dict[str, Any]:
        """Return the JSON object in ``text``. Raises FormatError for anything else."""
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            at = f"{error.msg} at its character {error.pos + 1}"
            self.refuse(f"is no JSON object ({at})", line)
        except (ValueError, RecursionError) as error:
            self.refuse(f"is no JSON object ({error})", line)
        if not isinstance(value, dict):
            self.refuse(f"found {cut(repr(value))}; allowed: a JSON object", line)
        return value

    def json(self, constants: bool = False) -> dict[str, Any]:
        """Return the whole file as a JSON object. Raises FormatError for anything else.

        ``constants``: allow NaN and Infinity, which are not JSON."""
        content = self.content
        try:
            value = json.loads(content.decode("utf-8")) if constants else json_files.decode(content)
        except (ValueError, RecursionError) as error:
            self._refuse_json(content, error)
        if not isinstance(value, dict):
            self.refuse(f"found {cut(repr(value))}; allowed: a JSON object", ())
        return value

    def _refuse_json(self, content: bytes, error: ValueError | RecursionError) -> NoReturn:
        """Raise FormatError for invalid JSON, with the position of the error."""
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
        """Raise FormatError if ``found`` lacks a key of ``kinds`` or its value has another type."""
        wrong = [key for key, kind in kinds.items() if not isinstance(found.get(key), kind)]
        if wrong:
            keys = ", ".join(map(repr, list(found)[:6])) or "nothing"
            self.refuse(f"is of another format: {', '.join(wrong)} missing or of another type "
                        f"(it has {keys})", (wrong[0],))  # fmt: skip

    def number(self, value: Any, what: str, location: int | Keys | None = None) -> float:
        """Return a finite number. Raises FormatError for any other value.

        ``location``: as for :meth:`refuse`."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what}: found {cut(repr(value))}; allowed: a number", location)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(f"{what}: found {number}; allowed: a finite number", location)
        return number

    @cached_property
    def content(self) -> bytes:
        """Content of the file, decompressed if it is a gzip file."""
        try:
            content = bounded.read_bytes(self.path)
            content = _unpacked(content) if content.startswith(_GZIP) else content
            return content.removeprefix(codecs.BOM_UTF8)
        except (OSError, ValueError) as error:
            self.refuse(cause(error))

    def forget(self) -> None:
        """Release the memory of the content."""
        vars(self).pop("content", None)


#: First bytes of a gzip file.
_GZIP = b"\x1f\x8b"
#: Most gzip members in one file.
_MOST_PARTS = 100


def _unpacked(packed: bytes) -> bytes:
    """Return decompressed gzip data.

    Raises ValueError for damaged data and for more than LARGEST_FILE bytes."""
    content, limit = b"", bounded.LARGEST_FILE
    try:
        for _ in range(_MOST_PARTS):
            unpacking = zlib.decompressobj(wbits=31)
            content += unpacking.decompress(packed, limit + 1 - len(content))
            if len(content) > limit:
                raise ValueError(f"unpacks to more than {limit} bytes; allowed: at most {limit}")
            if not unpacking.eof:
                raise ValueError("is no complete gzip file")
            packed = unpacking.unused_data
            if not packed:
                return content
    except zlib.error as error:
        raise ValueError(f"is no complete gzip file ({error})") from error
    raise ValueError(f"has more than {_MOST_PARTS} gzip files in one")


def sources(path: Path, suffixes: Sequence[str]) -> list[ImportedFile]:
    """Return the file at ``path``, or the files below it with one of ``suffixes``, sorted.

    Each suffix may be followed by .gz. Raises FormatError for a folder without such a file."""
    if not path.is_dir():
        return [ImportedFile(path)]
    endings = tuple(f"{suffix}{packed}" for suffix in suffixes for packed in ("", ".gz"))
    files = sorted(
        file
        for file in path.rglob("*")
        if not file.is_dir() and file.name.endswith(endings) and not file.name.startswith(".")
    )
    if not files:
        raise FormatError(f"import: {path}: holds no file that ends with {' or '.join(suffixes)}")
    return [ImportedFile(file, is_one_of_many=True) for file in files]
