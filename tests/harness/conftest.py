"""Fixtures: a run on the toy framework, which must leave no process or file behind, and a clock."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..bench import Bench
from ..frameworks.toy.plain import DeviceClock


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    try:
        yield bench
        bench.assert_nothing_left()
    finally:
        for process in bench.processes():  # left by a failed test
            os.kill(process, signal.SIGKILL)


@pytest.fixture
def exact_clock(monkeypatch: pytest.MonkeyPatch) -> DeviceClock:
    """Replace ``time.perf_counter`` by a clock that advances by waiting for a double's device."""
    clock = DeviceClock()
    monkeypatch.setattr(time, "perf_counter", clock)
    return clock
