"""Signals that are ignored from a moment on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from typing import Any

import pytest
from core import signals

from ...conftest import ROOT

NUMBERS = (signal.SIGUSR1, signal.SIGUSR2)


def flood(process: int) -> None:
    with suppress(ProcessLookupError):
        while True:
            for number in NUMBERS:
                os.kill(process, number)


def test_a_signal_that_comes_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", errors.append)
    usual = [signal.signal(number, lambda *_: None) for number in NUMBERS]
    flooding = get_context("fork").Process(target=flood, args=(os.getpid(),), daemon=True)
    flooding.start()
    try:
        with ThreadPoolExecutor() as other_thread:  # which may take a signal too
            other_thread.submit(time.sleep, 0).result()
            for _ in range(2000):
                for number in NUMBERS:
                    signal.signal(number, lambda *_: None)
                signals.ignore(NUMBERS)
    finally:
        flooding.kill()
        flooding.join()
        for number, handler in zip(NUMBERS, usual, strict=True):
            signal.signal(number, handler)
    assert not errors, errors[0]


def test_ignored_signals_are_not_fatal_while_python_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.harness.processes.late_signal"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
