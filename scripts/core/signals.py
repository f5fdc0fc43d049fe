"""Signals that are ignored from a moment on. Standard library only; Python 3.7 to 3.13."""

from __future__ import annotations

import signal
from typing import Iterable


def ignore(numbers: Iterable[int]) -> None:
    """Ignore these signals from now on.

    A signal that comes just before its handler is replaced would make Python print an OSError, so
    they are blocked meanwhile. Handlers of those that came before run once more.
    """
    numbers = list(numbers)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
