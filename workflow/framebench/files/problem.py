"""Problems with files that could not be read. Runs on every Python of the harness."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Invalid file or row: its place and the problem."""

    origin: str
    message: str


def cause(error: Exception) -> str:
    """Return the message of an error without its path, which is the problem's origin."""
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return shorten(str(error), 1000)


def shorten(message: str, most: int = 300) -> str:
    """Shorten a message to ``most`` characters by cutting its middle.
    Its end often names the place in the file."""
    kept = most // 3 - 4
    return message if len(message) <= most else f"{message[: 2 * kept]} .. {message[-kept:]}"
