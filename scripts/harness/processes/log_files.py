"""Logs of bounded size: beginning and end of what ranks print, and the number of bytes left out.

A rank prints into a pipe, which a thread of the launcher writes to its log. The thread sleeps while
nothing is printed. Control characters are escaped, because terminals would obey them.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import threading
from typing import Dict, List, Optional

#: Bytes kept of the beginning and, at least, of the end.
HEAD, TAIL = 4 * 2**20, 4 * 2**20
_BLOCK = 2**16
#: Control characters except tabs, line feeds and carriage returns; C2 starts those of two bytes.
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]")


def _escape(match: "re.Match[bytes]") -> bytes:
    return b"".join(b"\\x%02x" % byte for byte in match.group()[-1:])


class LogFile:
    """Log of at most ``head`` + 2 * ``tail`` bytes and one line."""

    def __init__(self, path: str, head: int = HEAD, tail: int = TAIL) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._head, self._tail = head, tail
        self._written = 0
        self._left_out = 0

    def write(self, data: bytes) -> None:
        """Append ``data``; what does not fit on the disk is dropped."""
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
        """Cut the file after its head and return what to write there."""
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
    """Logs of several processes, as a context.

    On exit, everything printed so far is in the logs; processes that still print get a broken
    pipe."""

    def __init__(self) -> None:
        self._logs: Dict[int, LogFile] = {}  # by the end of the pipe that is read
        self._asked, self._asks = os.pipe()
        self._answered = threading.Event()
        self._ends = False
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> "LogKeeper":
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        if self._thread is not None:
            if not self._thread.is_alive():
                return  # interrupted in its start: it may be about to use what is closed below
            self.flush()
            self._thread.join()
        for pipe in (self._asked, self._asks):
            os.close(pipe)
        for reading, log in self._logs.items():
            os.close(reading)
            log.close()

    def open(self, path: str) -> int:
        """Return the pipe of the process whose log is ``path``; the caller closes it after starting
        the process.

        Not allowed after :meth:`start`. Raises OSError."""
        log = LogFile(path)
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        self._logs[reading] = log
        return writing

    def start(self) -> None:
        """Start to write. Call it after all processes have been started, because threads and fork
        do not go well together."""
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def flush(self) -> None:
        """Return when everything printed before the call is written."""
        self._answered.clear()
        os.write(self._asks, b"?")
        self._answered.wait()

    def _keep(self) -> None:
        open_pipes: List[int] = list(self._logs)
        while True:
            readable, _, _ = select.select([self._asked, *open_pipes], [], [])
            asked = self._asked in readable
            # At most a pipe's content: a process may print without end.
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
        """Read at most ``blocks`` blocks; return whether more may come."""
        for _ in range(blocks):
            try:
                data = os.read(pipe, _BLOCK)
            except BlockingIOError:
                return True
            if not data:
                return False
            self._logs[pipe].write(data)
        return True
