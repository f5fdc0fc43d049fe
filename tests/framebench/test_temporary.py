"""Temporary folders vanish with their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes import PATIENCE, heed_signals

WORKFLOW = Path(__file__).parents[2] / "workflow"


def held(folder: Path, ends: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKFLOW.parent / "tests/framebench/programs/hold_folder.py", ends],
        env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(WORKFLOW)},
        stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL, preexec_fn=heed_signals,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("number", "ends", "status"),
    [
        (signal.SIGTERM, "pause", 143),
        (signal.SIGINT, "loop", 130),
        (0, "fail", 1),
    ],
)
def test_a_temporary_folder_goes_with_its_process(
    tmp_path: Path, number: int, ends: str, status: int
) -> None:
    process = held(tmp_path, ends)
    assert process.stdout
    assert process.stdout.readline()
    if number:
        process.send_signal(number)
    assert process.wait(timeout=PATIENCE) == status
    assert not list(tmp_path.iterdir())
