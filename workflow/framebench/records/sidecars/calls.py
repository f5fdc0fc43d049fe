"""Log of measuring calls: suite, time and command.

A record knows the command of its run only. Kept in ``calls.csv`` in the results.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..run import Problem
from . import noted

FILE = "calls.csv"


class CallEntry(NamedTuple):
    """One measuring call. ``started``: UTC, ISO 8601; ``suite``: its name; ``command``: the command
    line, quoted for a shell."""

    started: str
    suite: str
    command: str


def note(results: Path, suite: str, command: str) -> None:
    """Append a call that has just started. Raises OSError."""
    noted.append(results / FILE, CallEntry._fields, [CallEntry(noted.now(), suite, command)])


def load(results: Path) -> tuple[list[CallEntry], list[Problem]]:
    """Return all logged calls, and invalid lines."""
    rows, problems = noted.read(results / FILE, CallEntry._fields)
    return [CallEntry(*row) for row in rows], problems
