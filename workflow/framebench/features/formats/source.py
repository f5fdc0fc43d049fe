"""Reading of another tool's file, with errors that name the line."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from core import bounded
from core.text import printable, shorten

from ...config.validation import show
from ...files.json_files import cause
from ...records.run import RecordsError


class FormatError(RecordsError):
    """Raised if a file has another format or is incomplete; the message names file and line."""


@dataclass(frozen=True)
class ImportedFile:
    """A file to import. ``left_out``: reason and name of each figure that the reader skipped."""

    path: Path
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out(self, name: str, reason: str) -> None:
        """Record that a figure is skipped, with the reason."""
        self.left_out.append((reason, name))

    def refuse(self, message: str, line: int | None = None) -> NoReturn:
        """Raise :class:`FormatError`."""
        where = f"{self.path}, line {line}" if line else f"{self.path}"
        raise FormatError(f"import: {where}: {shorten(message, 1000)}")

    @cached_property
    def text(self) -> str:
        """Content of the file. Bytes that are not UTF-8 are replaced, since several programs may
        write into a log."""
        try:
            return bounded.read_bytes(self.path).decode("utf-8-sig", "replace")
        except OSError as error:
            self.refuse(cause(error))

    def lines(self) -> Iterator[tuple[int, str]]:
        """Yield number and text of each line that is not blank."""
        for number, line in enumerate(self.text.split("\n"), 1):
            if text := line.strip():
                yield number, printable(text)

    def object_of(self, text: str, line: int) -> dict[str, Any]:
        """Return the JSON object in ``text``. Raises FormatError for anything else."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.refuse(f"is not a JSON object ({error})", line)
        if not isinstance(value, dict):
            self.refuse(f"found {show(value)}; allowed: a JSON object", line)
        return value

    def number(self, value: Any, what: str, line: int) -> float:
        """Return a finite number. Raises FormatError for any other value."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(f"{what}: found {show(value)}; allowed: a number", line)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.refuse(f"{what}: found {number}; allowed: a finite number", line)
        return number
