"""Text that came from elsewhere, made fit to be shown: in a terminal, a table, a page.

Standard library only: results of a run are read between two attempts of it, too.
"""

from __future__ import annotations

import io
import re
import sys
from io import TextIOBase
from typing import TextIO

#: Control characters but tab and line feed (a terminal obeys them), the two that end a line
#: elsewhere, those that turn the direction of writing, halves of a surrogate pair, which no
#: encoding has, and two that XML does not allow.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)
#: What a spreadsheet takes for the beginning of a formula: these signs, in the full width of East
#: Asian text too, also behind characters that it trims or does not show.
_FORMULA = re.compile(
    "[\t\r]"
    "|[\\s\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff]*"
    "[=+\\-@\uff1d\uff0b\uff0d\uff20\u2212\ufe62\ufe63\ufe66\ufe6b]"
)
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def accept_any_text() -> None:
    """Write what the encoding of a terminal or batch system lacks as its escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def printable(text: str) -> str:
    r"""``text`` with what is unfit to be shown as its escape, such as ``\x1b``."""
    # Most text is: to ask for it takes a tenth of a search.
    return text if text.isprintable() else _UNFIT.sub(_escape, text)


class PrintableStream(TextIOBase):
    """A stream that writes all text fit to be shown to another one."""

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


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def no_formula(text: str) -> str:
    """Write a text for a cell of a CSV file, with an apostrophe before what a spreadsheet would
    compute. A number, or the dash for none, stays as it is. :func:`from_cell` undoes it."""
    return f"'{text}" if _is_computed(text) else text


def from_cell(cell: str) -> str:
    """Read what :func:`no_formula` wrote."""
    return cell[1:] if cell.startswith("'") and _is_computed(cell[1:]) else cell


def _is_computed(text: str) -> bool:
    """Tell whether a spreadsheet would compute a text, or one like it lies behind apostrophes that
    must be told from ours."""
    if text[:1].isalnum():
        return False  # as most texts begin
    plain = text.lstrip("'")
    return bool(_FORMULA.match(plain)) and plain != "-" and not _NUMBER.fullmatch(plain.strip(" "))
