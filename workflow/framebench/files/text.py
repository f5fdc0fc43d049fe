"""Untrusted text, made safe to show in a terminal, a table or a page.

Standard library only: results of a run are also read between two of its attempts.
"""

from __future__ import annotations

import re

#: Start of a formula in a spreadsheet, which trims blanks.
_FORMULA = re.compile(r"[\t\r]|\s*[=+\-@]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


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
