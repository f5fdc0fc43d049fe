"""Temporary folders vanish with their process, and after a kill with the next call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from framebench.files import temporary

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
        (signal.SIGHUP, "loop", 129),
        (0, "fail", 1),
        (0, "5", 5),
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


def test_what_a_kill_left_is_removed_by_the_next_call_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    processes = [held(tmp_path, "pause") for _ in range(2)]
    killed, running = (
        Path(process.stdout.readline().strip()) for process in processes if process.stdout
    )
    processes[0].kill()
    processes[0].wait()
    (tmp_path / "framebench-work-mine").write_text("a file")
    (tmp_path / "framebench-work-link").symlink_to(running)
    with temporary.folder() as own:
        assert own.is_dir()
        assert not killed.exists()
        assert (running / "x").read_text() == "content"
    assert not own.exists()
    assert (tmp_path / "framebench-work-mine").exists()
    processes[1].kill()
    processes[1].wait()
