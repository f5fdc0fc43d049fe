"""Text that came from elsewhere, made fit to be shown: in a terminal, a table, a page.

Standard library only: results of a run are read between two attempts of it, too.
"""

from __future__ import annotations

import re

#: Control characters but tab and line feed (a terminal obeys them), the two that end a line
#: elsewhere, those that turn the direction of writing, and halves of a surrogate pair, which no
#: encoding has.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff]"
)
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def printable(text: str) -> str:
    r"""``text`` with what is unfit to be shown as its escape, such as ``\x1b``."""
    # Most text is: to ask for it takes a tenth of a search.
    return text if text.isprintable() else _UNFIT.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def no_formula(text: str) -> str:
    """``text`` for a cell of a CSV file, with an apostrophe before what a spreadsheet would
    compute. A number, or the dash for none, stays as it is."""
    is_plain = not _FORMULA.match(text) or text == "-" or _NUMBER.fullmatch(text)
    return text if is_plain else f"'{text}"
