"""Problems of files that could not be read. Runs on every Python of the harness."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A file or a row that is no run: where it stands and what is wrong with it."""

    origin: str
    message: str


def cause(error: Exception) -> str:
    """Return the message of an error without its path, which is the problem's origin."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return shorten(str(error), 1000)


def shorten(message: str, most: int = 300) -> str:
    """Cut a message that may repeat a long input to a number of characters: its middle, because a
    place in the file often stands at its end."""
    kept = most // 3 - 4
    return message if len(message) <= most else f"{message[: 2 * kept]} .. {message[-kept:]}"
