"""Text for readers: untrusted text, made safe to show and short enough; durations."""

from __future__ import annotations

import io
import re
import sys
from typing import Match

#: Unprintable characters: control characters except tab and line feed, line and paragraph
#: separators, direction marks, surrogates, which no encoding has, and two that XML forbids.
_UNFIT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff\ufeff\ufffe\uffff]"
)


def printable(text: str) -> str:
    r"""Return ``text`` with unprintable characters escaped, such as ``\x1b``."""
    # Most text is printable, and isprintable takes a tenth of the time of a search.
    return text if text.isprintable() else _UNFIT.sub(_escape, text)


def _escape(match: Match[str]) -> str:
    number = ord(match.group())
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def shorten(text: str, most: int = 300) -> str:
    """Return printable text of at most ``most`` characters, with the middle cut out.

    The end of a message often names the place in a file.
    """
    text, kept = printable(text), most // 3 - 4
    return text if len(text) <= most else f"{text[: 2 * kept]} .. {text[-kept:]}"


def duration(seconds: float) -> str:
    """Format seconds, for example ``1 min 15 s``."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{seconds / 86400:.1f} days"


def minutes(seconds: float) -> str:
    """Format a time budget in words, such as ``10 minutes``."""
    whole, rest = divmod(seconds, 60)
    return duration(seconds) if rest or not whole else counted(int(whole), "minute")


def clock(seconds: float) -> str:
    """Format seconds like a clock, such as ``4:31`` or ``1:04:31``."""
    whole, second = divmod(int(seconds), 60)
    hour, minute = divmod(whole, 60)
    return f"{hour}:{minute:02d}:{second:02d}" if hour else f"{minute}:{second:02d}"


def counted(number: int, noun: str) -> str:
    """Return a number with a noun, in the plural unless it is 1."""
    return f"{number} {noun}{'s' * (number != 1)}"


def accept_any_text() -> None:
    """Make standard output and error escape characters that the encoding of a terminal or batch
    system lacks, so that no message ends a run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
