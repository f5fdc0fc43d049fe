"""A bench for every test, which must leave nothing on it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..bench import Bench


@pytest.fixture
def toy(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    try:
        yield bench
        bench.assert_nothing_left()
    finally:
        for process in bench.processes():  # left by a failed test
            os.kill(process, signal.SIGKILL)
