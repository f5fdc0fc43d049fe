"""Signals that are ignored from a moment on. Standard library only; Python 3.7 to 3.13."""

from __future__ import annotations

import atexit
import ctypes
import signal
from typing import Iterable, List

_set_disposition = ctypes.CDLL(None).signal
_set_disposition.argtypes = [ctypes.c_int, ctypes.c_void_p]
_set_disposition.restype = ctypes.c_void_p


def ignore(numbers: Iterable[int]) -> None:
    """Ignore these signals from now on, in programs that this process starts too.

    Their Python handlers stay and may run once more, for signals that came before: Python prints an
    OSError where a handler is gone by then, and any thread may have taken the signal.
    """
    numbers = list(numbers)
    for number in numbers:
        _set_disposition(number, int(signal.SIG_IGN))
    atexit.register(_drop_handlers, numbers)


def _drop_handlers(numbers: List[int]) -> None:
    """Drop the Python handlers: at its end Python makes signals that have one fatal again."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
