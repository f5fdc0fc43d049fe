"""Standard output and standard error of a process."""

from __future__ import annotations

import io
import sys


def accept_any_text() -> None:
    """Escape characters that the encoding of a terminal or batch system lacks, so that no message
    ends a run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
