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
    # Most text is printable, and isprintable takes a tenth of a search.
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


def accept_any_text() -> None:
    """Make standard output and error escape characters that the encoding of a terminal or batch
    system lacks, so that no message ends a run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
