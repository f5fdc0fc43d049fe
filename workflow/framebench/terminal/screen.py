"""Output of lines to a terminal, whose last line is rewritten in place, or to a log."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Callable
from typing import TextIO

#: Seconds after which the status line of a terminal is written anew.
_EVERY = 10.0
_CLEAR = "\r\033[K"


class Screen:
    """Writer of lines and of a status line. ``status``: returns the status line."""

    def __init__(self, stream: TextIO, is_terminal: bool, status: Callable[[], str]) -> None:
        self._stream, self._is_terminal, self._status = stream, is_terminal, status
        self._lock = threading.RLock()
        self._closed = threading.Event()
        if is_terminal:
            threading.Thread(target=self._refresh, daemon=True).start()

    def say(self, text: str) -> None:
        """Write one or more lines above the status line."""
        with self._lock:
            self._write(f"{text}\n")

    def show_status(self, in_log: bool = False) -> None:
        """Show the status line on a terminal; in a log only if ``in_log`` is set."""
        with self._lock:
            if self._is_terminal:
                self._write("")
            elif in_log:
                self._write(f"{self._status()}\n")

    def close(self) -> None:
        """Remove the status line for good."""
        with self._lock:
            if not self._closed.is_set():
                self._closed.set()
                if self._is_terminal:
                    self._send(_CLEAR)

    def _write(self, text: str) -> None:
        """Write text and status line in one call, so that nothing flickers.
        The cursor stays at the start of the status line, which other output then overwrites. It is
        cut, as a line of the terminal's full width makes some wrap it."""
        if self._is_terminal and not self._closed.is_set():
            status, room = self._status(), shutil.get_terminal_size().columns - 1
            status = status if len(status) <= room else f"{status[: room - 2]}.."
            text = f"{_CLEAR}{text}{status}\r"
        self._send(text)

    def _send(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _refresh(self) -> None:
        while not self._closed.wait(_EVERY):
            # A vanished terminal stops no measurement.
            with self._lock, contextlib.suppress(OSError, ValueError):
                if not self._closed.is_set():
                    self._write("")
