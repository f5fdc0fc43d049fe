"""Output of lines to a terminal, whose last line is rewritten in place, or to a log."""

from __future__ import annotations

import contextlib
import os
import textwrap
import threading
import time
from collections.abc import Callable
from typing import Any, TextIO

#: Seconds between two status lines. Rewriting a status line on a terminal disturbs no benchmark; in
#: a log each takes a line, and appears only after a result.
EVERY_ON_TERMINAL, EVERY_IN_LOG = 10.0, 60.0
_CLEAR = "\r\033[K"


def columns_of(stream: TextIO) -> int:
    """Return the columns of a terminal; 0 for another stream."""
    try:
        return (os.get_terminal_size(stream.fileno()).columns or 80) if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


def wrapped(text: str, columns: int) -> str:
    """Return text with each line wrapped, but for indented ones: commands and logs, to be copied.
    0 columns: no line is wrapped."""
    options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
    return "\n".join(
        line
        if not columns or line.startswith(" ")
        else textwrap.fill(line, columns, subsequent_indent="    ", **options)
        for line in text.split("\n")
    )


class Screen:
    """Writer of lines and of a status line. ``status``: returns the status line. Times are those
    of ``time.time()``."""

    def __init__(self, stream: TextIO, is_terminal: bool, status: Callable[[], str]) -> None:
        self._stream, self._is_terminal, self._status = stream, is_terminal, status
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._shown_at = time.time()
        if is_terminal:
            threading.Thread(target=self._refresh, daemon=True).start()

    def say(self, text: str) -> None:
        """Write one or more lines above the status line."""
        if self._is_terminal:
            text = wrapped(text, self._columns())
        with self._lock:
            self._write(f"{text}\n")

    def show_status(self, now: float, is_due: bool = False) -> None:
        """Show the status line after a result or a start; in a log at most every EVERY_IN_LOG
        seconds, or where it is due."""
        with self._lock:
            if self._is_terminal:
                self._write("")
            elif is_due or now - self._shown_at >= EVERY_IN_LOG:
                self._shown_at = now
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
            status, room = self._status(), self._columns() - 1
            status = status if len(status) <= room else f"{status[: room - 2]}.."
            text = f"{_CLEAR}{text}{status}\r"
        self._send(text)

    def _send(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    def _columns(self) -> int:
        return columns_of(self._stream) or 80

    def _refresh(self) -> None:
        while not self._closed.wait(EVERY_ON_TERMINAL):
            # A vanished terminal stops no measurement.
            with self._lock, contextlib.suppress(OSError, ValueError):
                if not self._closed.is_set():
                    self._write("")
