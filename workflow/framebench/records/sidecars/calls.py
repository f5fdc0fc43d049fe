"""Which suite was measured, when, and by which command: a record knows the command of its run, not
the call that asked for it. Kept in ``calls.csv`` in the results."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ..run import Problem
from . import noted

FILE = "calls.csv"


class CallEntry(NamedTuple):
    """One call that measured something. ``started``: UTC, ISO 8601; ``suite``: its name;
    ``command``: the command line, quoted for a shell."""

    started: str
    suite: str
    command: str


def note(results: Path, suite: str, command: str) -> None:
    """Add one that has just started. Raises OSError."""
    noted.append(results / FILE, CallEntry._fields, [CallEntry(noted.now(), suite, command)])


def load(results: Path) -> tuple[list[CallEntry], list[Problem]]:
    """All that were noted, and lines that are none."""
    rows, problems = noted.read(results / FILE, CallEntry._fields)
    return [CallEntry(*row) for row in rows], problems
