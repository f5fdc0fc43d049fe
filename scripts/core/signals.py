"""Signals that ask a process to end. Standard library only; Python 3.7 to 3.13."""

from __future__ import annotations

import atexit
import ctypes
import signal
import time
from typing import Iterable, List

#: Signals that ask a process to end, and may be handled.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_OWN_SECONDS = 5.0

_set_disposition = ctypes.CDLL(None).signal
_set_disposition.argtypes = [ctypes.c_int, ctypes.c_void_p]
_set_disposition.restype = ctypes.c_void_p


def ignore(numbers: Iterable[int]) -> None:
    """Ignore these signals from now on, also in programs that this process starts.

    Their Python handlers stay and may run once more, for signals that came before: Python prints an
    OSError where a handler is gone by then, and any thread may have taken the signal.
    """
    numbers = list(numbers)
    for number in numbers:
        _set_disposition(number, int(signal.SIG_IGN))
    atexit.register(_drop_handlers, numbers)


def await_own(statuses: Iterable[int]) -> None:
    """Wait a few seconds for a signal to this process if one ended another process of its job.

    A scheduler that ends a job signals its processes one after the other, on each node at another
    moment. The handler of the signal says what happens then.

    ``statuses``: exit statuses of the other processes: minus the signal, or 128 plus the signal.
    """
    if any(max(-status, status - 128) in ENDING for status in statuses):
        time.sleep(_OWN_SECONDS)


def _drop_handlers(numbers: List[int]) -> None:
    """Drop the Python handlers: at its end Python makes signals that have one fatal again."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
