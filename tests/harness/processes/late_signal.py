"""Program that ignores a signal and sends it to itself after Python has dropped its handlers."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from core import signals


class Late:
    """Object that sends the signal when it is deleted: modules are, at the end of Python."""

    def __init__(self, send: Callable[[int, int], None] = os.kill) -> None:
        self.send, self.target = send, (os.getpid(), int(signal.SIGTERM))

    def __del__(self) -> None:
        self.send(*self.target)


signal.signal(signal.SIGTERM, lambda *_: print("handled"))
signals.ignore([signal.SIGTERM])
sys.modules["late"] = Late()  # type: ignore[assignment]
