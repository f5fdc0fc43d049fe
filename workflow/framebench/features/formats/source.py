"""Bounded reading of another tool's file, with errors that name the line."""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from core import bounded
from core.text import printable

from ...files.problem import cause
from ...files.text import cut
from ...records.run import RecordsError

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

    def refuse(self, message: str, line: int | None = None) -> NoReturn:
        """Raise :class:`FormatError`."""
        where = f"{self.path}, line {line}" if line else f"{self.path}"
        raise FormatError(f"import: {where}: {cut(message, 1000)}")

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

    def number(self, value: Any, what: str, line: int | None = None) -> float:
        """Return a finite number. Raises FormatError for any other value."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what}: found {cut(repr(value))}; allowed: a number", line)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(f"{what}: found {number}; allowed: a finite number", line)
        return number

    @cached_property
    def content(self) -> bytes:
        """Content of the file."""
        try:
            return bounded.read_bytes(self.path).removeprefix(codecs.BOM_UTF8)
        except (OSError, ValueError) as error:
            self.refuse(cause(error))

    @property
    def text(self) -> str:
        """Return the whole file as text."""
        try:
            return printable(self.content.decode())
        except UnicodeDecodeError as error:
            self.refuse(f"is no UTF-8 text (byte {error.start + 1} of the file)", 1)

    def forget(self) -> None:
        """Release the memory of the content."""
        vars(self).pop("content", None)


def sources(path: Path, suffixes: Sequence[str]) -> list[ImportedFile]:
    """Return the file at ``path``, or the files below it with one of ``suffixes``, sorted.

    Raises FormatError for a folder without such a file."""
    if not path.is_dir():
        return [ImportedFile(path)]
    files = sorted(
        file
        for file in path.rglob("*")
        if not file.is_dir()
        and file.name.endswith(tuple(suffixes))
        and not file.name.startswith(".")
    )
    if not files:
        raise FormatError(f"import: {path}: holds no file that ends with {' or '.join(suffixes)}")
    return [ImportedFile(file, is_one_of_many=True) for file in files]
