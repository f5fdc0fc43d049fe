"""Signals that end the call: its runs end too, and existing results are reported."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

import psutil
from core import programs


def end_descendants(is_over: threading.Event) -> None:
    """Ask all descendants in this process's group to end, each once, until ``is_over``."""
    asked = set[int]()
    while not is_over.wait(0.05):
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(OSError):  # the process may have ended
                if process.pid not in asked and os.getpgid(process.pid) == os.getpgrp():
                    asked.add(process.pid)
                    os.kill(process.pid, signal.SIGTERM)


class StopSignals:
    """First stop signal of a call; later ones do nothing. Signals that are ignored at the start
    (``nohup``) stay ignored."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._stop: Callable[[], None] | None = None

    @property
    def status(self) -> int:
        """Exit status after a stop signal, as in shells; 0 without one."""
        return 128 + self.received if self.received else 0

    def watch(self, stop: Callable[[], None]) -> None:
        """Call ``stop`` at the first signal."""
        self._stop = stop
        if threading.current_thread() is not threading.main_thread():
            return
        for number in programs.ENDING_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._receive)

    def ignore(self) -> None:
        """Ignore further signals, which would kill this process once Python has dropped its
        handlers."""
        if self.received:
            programs.ignore_signals(programs.ENDING_SIGNALS)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            return
        self.received = signal.Signals(number)
        if self._stop:
            self._stop()
