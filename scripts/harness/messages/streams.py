"""Standard output and standard error of a process."""

from __future__ import annotations

import io
import sys


def accept_any_text() -> None:
    """Write what the encoding of a terminal or batch system lacks as its escape: a message must
    not end a measurement."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
