"""Exit status of a command whose check does not pass."""

from __future__ import annotations

#: Exit status of a process ended by a signal, minus the signal's number, as in shells.
SIGNAL_BASE = 128


class NotPassed(Exception):
    """A check that does not pass, with the exit status of its command."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
