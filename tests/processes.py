"""What tests that start programs share."""

from __future__ import annotations

import signal


def heed_signals() -> None:
    """In a child, before it starts: end by the signals that a terminal sends, which a test run in
    the background or under nohup was told to ignore."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
