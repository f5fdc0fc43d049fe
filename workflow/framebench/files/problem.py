"""Problems with files that could not be read. Runs on every Python of the harness."""

from __future__ import annotations

from typing import NamedTuple

from core.text import shorten


class Problem(NamedTuple):
    """Invalid file or row: its place and the problem."""

    origin: str
    message: str


def cause(error: Exception) -> str:
    """Return the message of an error without its path, which is the problem's origin."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return shorten(str(error), 1000)
