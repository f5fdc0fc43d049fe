"""Failures of worker processes are reported to whoever waits for a batch."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.synchronize import Event

import pytest
from harness.loader import workers

from ...processes import wait_for

FORK = multiprocessing.get_context("fork")


def _work(until: Event, code: int) -> None:
    until.wait(600)
    os._exit(code)


def waits(then: Callable[[int, Event], object], code: int = 0) -> Iterator[int]:
    """Yield the batches of a loader with one worker, waiting forever for the second, as MXNet's.
    ``then``: called first, with the worker's process id and the event at which it ends."""
    until = FORK.Event()
    process = FORK.Process(target=_work, args=(until, code), daemon=True)
    process.start()
    yield 1
    then(process.pid or 0, until)
    threading.Event().wait()
    yield 2


def kill(number: int, until: Event) -> None:
    os.kill(number, signal.SIGKILL)


def end(number: int, until: Event) -> None:
    until.set()


def nothing(number: int, until: Event) -> None:
    pass


@pytest.mark.parametrize(
    ("then", "code", "limit", "reason"),
    [
        (kill, 0, 60, r"a worker of the loader, process \d+, was killed by SIGKILL"),
        (end, 3, 60, r"a worker of the loader, process \d+, ended with exit code 3"),
        (nothing, 0, 0.2, "has given nothing for 0.2 seconds: its workers hang"),
    ],
)
def test_a_worker_that_dies_or_hangs_is_reported_within_seconds(
    then: Callable[[int, Event], object], code: int, limit: float, reason: str
) -> None:
    batch = workers.watched(waits(then, code), limit)
    assert next(batch) == 1
    start = time.monotonic()
    with pytest.raises(workers.WorkerLost, match=reason):
        next(batch)
    assert time.monotonic() - start < 60
    wait_for(lambda: not multiprocessing.active_children(), "its workers to be ended")


def test_a_loader_that_ends_its_workers_by_itself_is_no_matter() -> None:
    def ends() -> Iterator[int]:
        process = FORK.Process(target=_work, args=(FORK.Event(), 0), daemon=True)
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
    thread.join(120)
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
