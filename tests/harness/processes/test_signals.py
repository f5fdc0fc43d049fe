"""Signals that are ignored from a moment on."""

from __future__ import annotations

import os
import subprocess
import sys

from ...conftest import ROOT


def test_ignored_signals_are_not_fatal_while_python_ends() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.harness.processes.late_signal"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "scripts")},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
