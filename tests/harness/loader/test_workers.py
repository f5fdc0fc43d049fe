"""Failures of worker processes are reported to whoever waits for a batch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import pytest
from harness.loader import workers

FORK = multiprocessing.get_context("fork")


def _sleep(seconds: float, code: int) -> None:
    time.sleep(seconds)
    os._exit(code)


def waits(then: Callable[[int], object], code: int = 0, seconds: float = 60) -> Iterator[int]:
    """Yield the batches of a loader with one worker, waiting forever for the second, as MXNet's.
    ``then``: called with the worker's process id first."""
    process = FORK.Process(target=_sleep, args=(seconds, code), daemon=True)
    process.start()
    yield 1
    then(process.pid or 0)
    threading.Event().wait()
    yield 2


def kill(number: int) -> None:
    os.kill(number, signal.SIGKILL)


def nothing(number: int) -> None:
    pass


@pytest.mark.parametrize(
    ("then", "code", "limit", "reason"),
    [
        (kill, 0, 60, r"a worker of the loader, process \d+, was killed by SIGKILL"),
        (nothing, 3, 60, r"a worker of the loader, process \d+, ended with exit code 3"),
        (nothing, 0, 0.2, "has given nothing for 0.2 seconds: its workers hang"),
    ],
)
def test_a_worker_that_dies_or_hangs_is_reported_within_seconds(
    then: Callable[[int], object], code: int, limit: float, reason: str
) -> None:
    batch = workers.watched(waits(then, code, 0.1 if code else 60), limit)
    assert next(batch) == 1
    start = time.monotonic()
    with pytest.raises(workers.WorkerLost, match=reason):
        next(batch)
    assert time.monotonic() - start < 10
    while multiprocessing.active_children():
        assert time.monotonic() - start < 20, "its workers are not ended"
        time.sleep(0.02)


def test_a_loader_that_ends_its_workers_by_itself_is_no_matter() -> None:
    def ends() -> Iterator[int]:
        process = FORK.Process(target=_sleep, args=(60, 0), daemon=True)
        process.start()
        yield 1
        process.terminate()
        time.sleep(4 * workers.EACH)  # until it has been checked
        yield 2

    assert list(workers.watched(ends())) == [1, 2]


def test_what_a_loader_says_itself_stays_as_it_is() -> None:
    def breaks() -> Iterator[int]:
        yield 1
        raise OSError("no space")

    batch = workers.watched(breaks())
    assert next(batch) == 1
    with pytest.raises(OSError, match="no space"):
        next(batch)


def test_nobody_looks_any_more_behind_the_last_batch() -> None:
    before = {*threading.enumerate()}
    batch = workers.watched(iter(range(3)))
    assert next(batch) == 0
    (thread,) = {*threading.enumerate()} - before
    batch.close()  # type: ignore[attr-defined]
    thread.join(10)
    assert not thread.is_alive()


class Batch:
    pass


def test_a_batch_is_let_go_while_the_next_one_is_waited_for() -> None:
    """Fail if a batch is held while the next one is waited for, or the last one by a traceback."""
    held = []

    def gives() -> Iterator[Batch]:
        batch = Batch()
        last = weakref.ref(batch)
        yield batch
        del batch
        held.append(last())
        yield Batch()

    batch = workers.watched(gives())
    next(batch)
    next(batch)
    assert held == [None]
