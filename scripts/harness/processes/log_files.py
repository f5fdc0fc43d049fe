"""Logs of bounded size: beginning and end of what ranks print, and how much lies between.

A rank prints into a pipe, which a thread of the launcher empties into its log. The thread sleeps
while nobody prints. Control characters are written as escapes: no terminal shall obey a log.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import threading
from typing import Dict, List

#: Bytes that are kept of the beginning and, at least, of the end.
HEAD, TAIL = 4 * 2**20, 4 * 2**20
_BLOCK = 2**16
#: All but tabs, line feeds and carriage returns; those behind C2 are the second half in UTF-8.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


def _escape(found: "re.Match[bytes]") -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in found.group()[-1:])


class LogFile:
    """A log that never has more than ``head`` + 2 * ``tail`` bytes and one line."""

    def __init__(self, path: str, head: int = HEAD, tail: int = TAIL) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._head, self._tail = head, tail
        self._written = 0
        self._left_out = 0

    def write(self, data: bytes) -> None:
        """Append ``data``; what finds no room on the disk is left out."""
        data = _CONTROL.sub(_escape, data)
        if self._written + len(data) > self._head + 2 * self._tail:
            data = self._shorten(data)
        with contextlib.suppress(OSError):
            while data:
                count = os.write(self._file, data)
                self._written += count
                data = data[count:]
        self._left_out += len(data)

    def _shorten(self, data: bytes) -> bytes:
        """Cut the file behind its head; return what is to be written there."""
        start = min(self._head, self._written)
        rest = os.pread(self._file, self._written - start, start)
        if self._left_out:  # behind the line that says so
            rest = rest[rest.find(b"\n", 1) + 1 :]
        rest += data
        kept = rest[: self._head - start]
        rest = rest[len(kept) :]
        self._left_out += max(0, len(rest) - self._tail)
        os.ftruncate(self._file, start)
        os.lseek(self._file, start, os.SEEK_SET)
        self._written = start
        note = b"\n[%d bytes left out]\n" % self._left_out
        return kept + note + rest[-self._tail :]

    def close(self) -> None:
        os.close(self._file)


class LogKeeper:
    """The logs of several processes. Use as a context: on the way out, what has been printed by
    then is in the logs, and whoever still prints gets a broken pipe."""

    def __init__(self) -> None:
        self._logs: Dict[int, LogFile] = {}  # by the end of the pipe that is read
        self._asked, self._asks = os.pipe()
        self._answered = threading.Event()
        self._ends = False
        self._thread = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> "LogKeeper":
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        if self._thread.is_alive():
            self.flush()
            self._thread.join()
        for pipe in (self._asked, self._asks):
            os.close(pipe)
        for reading, log in self._logs.items():
            os.close(reading)
            log.close()

    def open(self, path: str) -> int:
        """Return what the process whose log lies at ``path`` prints into; to be closed by whoever
        has started it. Not after :meth:`start`. Raises OSError."""
        log = LogFile(path)
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._logs[reading] = log
        return writing

    def start(self) -> None:
        """Begin to write. After all processes have been started: a thread and fork do not go well
        together."""
        self._thread.start()

    def flush(self) -> None:
        """Return when all is written that had been printed at the time of the call."""
        self._answered.clear()
        os.write(self._asks, b"?")
        self._answered.wait()

    def _keep(self) -> None:
        open_pipes: List[int] = list(self._logs)
        while True:
            readable, _, _ = select.select([self._asked, *open_pipes], [], [])
            asked = self._asked in readable
            # At most what a pipe holds: somebody may print without end.
            for pipe in list(open_pipes) if asked else readable:
                if pipe != self._asked and not self._take(pipe, 16 if asked else 1):
                    open_pipes.remove(pipe)
            if asked:
                os.read(self._asked, 1)
                ends = self._ends
                self._answered.set()
                if ends:
                    return

    def _take(self, pipe: int, blocks: int) -> bool:
        """Read at most so many blocks of what is there. Return whether more may come."""
        for _ in range(blocks):
            try:
                data = os.read(pipe, _BLOCK)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._logs[pipe].write(data)
        return True
