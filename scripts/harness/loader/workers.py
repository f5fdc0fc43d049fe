"""Detect loader workers that have died or hang.

PyTorch's and OneFlow's loaders watch their workers. MXNet's starts another one, and waits for the
batch of the one that died; PaddlePaddle's waits as long as its workers live. A thread here looks
from time to time, only while a batch is awaited. On trouble it ends the workers, which unblocks
loaders that wait outside of Python, and signals this process, which unblocks those that wait
within.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from typing import Any, Dict, Iterator, Optional, Set, TypeVar

from harness.adapter import Mismatch

T = TypeVar("T")

#: Seconds for a batch, after which a worker counts as hanging.
TIMEOUT = 120
#: Seconds between two looks. Trouble must be seen twice, because a loader's own error says more.
EACH = 0.5
_SIGNAL = signal.SIGUSR2
#: Exit codes of normal ends: by itself, or by its loader.
_GOOD = (0, -int(signal.SIGTERM))
#: Workers seen in this process, by their id, which names what they leave in shared memory.
STARTED: Set[int] = set()


class WorkerLost(Mismatch):
    """Raised where a worker died or hangs; the message says which."""


class _GiveUp(BaseException):
    """Raised while a batch is awaited. It is no Exception, because MXNet would then wait for its
    workers."""


class _Watch:
    """State of the watching thread.

    ``waiting``: since when a batch is awaited, by :func:`time.monotonic`. ``trouble``: what is
    wrong, for the message."""

    #: Watch of the current wait; at most one, because only one thread waits.
    current: Optional[_Watch] = None

    def __init__(self, seconds: float) -> None:
        self.waiting: Optional[float] = None
        self.trouble = ""
        self._seconds = seconds
        self._over = threading.Event()
        self._workers: Dict[int, Any] = {}
        self._before = {process.pid for process in multiprocessing.active_children()}
        self._thread = threading.Thread(target=self._look, name="workers", daemon=True)
        self._thread.start()

    def know(self) -> None:
        """Note which workers exist, while they live."""
        for process in multiprocessing.active_children():
            if process.pid is not None and process.pid not in self._before:
                self._workers[process.pid] = process
                STARTED.add(process.pid)

    def end(self) -> None:
        self._over.set()

    def _look(self) -> None:
        wrong_since: Optional[float] = None
        while not self._over.wait(EACH):
            self.know()
            since = self.waiting
            trouble = "" if since is None else self._wrong(since)
            if trouble and wrong_since == since:
                self.trouble = trouble
                break
            wrong_since = since if trouble else None
        else:
            return
        while not self._over.wait(EACH):
            self._give_up()

    def _wrong(self, since: float) -> str:
        lost = self.lost()
        if lost:
            return lost
        if time.monotonic() - since > self._seconds:
            return f"the loader has given nothing for {self._seconds:g} seconds: its workers hang"
        return ""

    def lost(self, by_signals_alone: bool = False) -> str:
        """Return which worker ended abnormally and how; "" without one."""
        for number, process in list(self._workers.items()):
            code = _exit_code(process)
            if code is None or code in _GOOD:
                continue
            if code < 0 or not by_signals_alone:
                return f"a worker of the loader, process {number}, {_ending(code)}"
        return ""

    def _give_up(self) -> None:
        for number, process in list(self._workers.items()):
            if _exit_code(process) is None:
                with contextlib.suppress(OSError):
                    os.kill(number, signal.SIGKILL)
        main = threading.main_thread().ident
        if main is not None:
            signal.pthread_kill(main, _SIGNAL)


def _exit_code(process: Any) -> Optional[int]:
    """Return the exit code; None while it runs, 0 where its loader has closed it."""
    try:
        code: Optional[int] = process.exitcode
    except ValueError:
        return 0
    return code


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    return f"was killed by {signal.Signals(-code).name}"


def _on_signal(number: int, frame: Any) -> None:
    watch = _Watch.current
    if watch is not None and watch.trouble:
        raise _GiveUp(watch.trouble)


def watched(batches: Iterator[T], seconds: float = TIMEOUT) -> Iterator[T]:
    """Yield the batches of ``batches``.

    Raises :class:`WorkerLost` where one of its workers dies abnormally, or one batch takes longer
    than ``seconds``, and what ``batches`` raises. Signals reach the main thread only; elsewhere
    nothing is watched."""
    if threading.current_thread() is not threading.main_thread():
        yield from batches
        return
    signal.signal(_SIGNAL, _on_signal)
    watch, first = _Watch(seconds), True
    try:
        while True:
            try:
                try:
                    watch.waiting, _Watch.current = time.monotonic(), watch
                    batch = next(batches)
                finally:
                    _Watch.current = watch.waiting = None
                if first:
                    watch.know()  # one may die before the first look
                    first = False
            except StopIteration:
                return
            except BaseException as error:
                # a worker that reported its own error ends with a code too
                trouble = watch.trouble or watch.lost(by_signals_alone=True)
                if not trouble and isinstance(error, (ConnectionError, EOFError)):
                    # the other end is just dying and has no exit code yet
                    time.sleep(EACH)
                    trouble = watch.lost(by_signals_alone=True)
                if trouble:
                    raise WorkerLost(trouble) from error
                raise
            yield batch
            del batch  # nor does a traceback hold the last one
    finally:
        watch.end()
