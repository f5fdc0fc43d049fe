"""What could not be read. For any Python that the harness runs on, as what imports it may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """A file or a row that is no run: where it stands and what is wrong with it."""

    origin: str
    message: str


def cause(error: Exception) -> str:
    """What went wrong, without the path: the problem's origin says where."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return shorten(str(error), 1000)


def shorten(message: str, most: int = 300) -> str:
    """Cut a message that may repeat a long input to a number of characters: its middle, because a
    place in the file often stands at its end."""
    kept = most // 3 - 4
    return message if len(message) <= most else f"{message[: 2 * kept]} .. {message[-kept:]}"
