"""Untrusted text, made safe to show in a terminal, a table or a page.

Standard library only: results of a run are also read between two of its attempts.
"""

from __future__ import annotations

import re
from io import TextIOBase
from typing import TextIO

from core.text import accept_any_text as accept_any_text
from core.text import printable

#: Start of a formula in a spreadsheet: these signs, also in full width, and also after characters
#: that a spreadsheet trims or hides.
_FORMULA = re.compile(
    "[\t\r]"
    "|[\\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]*"
    "[=+\\-@\uff1d\uff0b\uff0d\uff20\u2212\ufe62\ufe63\ufe66\ufe6b]"
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


class PrintableStream(TextIOBase):
    """Stream that writes text to another one, with unprintable characters escaped."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(printable(text))
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


def cut(text: str, most: int = 60) -> str:
    """Return a text of at most ``most`` characters, longer ones cut at the end."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def no_formula(text: str) -> str:
    """Return a text for a CSV cell, with an apostrophe before anything a spreadsheet would compute.
    Numbers, and the dash for none, stay as they are. :func:`from_cell` undoes it."""
    return f"'{text}" if _is_computed(text) else text


def from_cell(cell: str) -> str:
    """Return the text that :func:`no_formula` wrote."""
    return cell[1:] if cell.startswith("'") and _is_computed(cell[1:]) else cell


def _is_computed(text: str) -> bool:
    """Return whether a text, or what follows its leading apostrophes, is a formula in a
    spreadsheet."""
    if text[:1].isalnum():
        return False  # true of most texts
    plain = text.lstrip("'")
    return bool(_FORMULA.match(plain)) and plain != "-" and not _NUMBER.fullmatch(plain.strip(" "))
