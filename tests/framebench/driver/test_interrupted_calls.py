"""Commands that call Snakemake: an interruption reaches it, and its end is waited for."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from framebench.runs import snakemake_calls


class Snakemake:
    """A process whose first wait ends with an exception; ``said`` has what happened to it."""

    def __init__(self, stopped: BaseException) -> None:
        self.stopped, self.said = stopped, list[object]()

    def __call__(self, arguments: list[str]) -> Snakemake:
        return self

    def __enter__(self) -> Snakemake:
        return self

    def __exit__(self, *error: object) -> None:
        self.said.append("left")

    def wait(self, seconds: float | None = None) -> int:
        self.said.append(("wait", seconds))
        if len(self.said) == 1:
            raise self.stopped
        return 130

    def send_signal(self, number: int) -> None:
        self.said.append(number)


def called(
    stopped: BaseException, seconds: float | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> list[object]:
    process = Snakemake(stopped)
    monkeypatch.setattr(subprocess, "Popen", process)
    try:
        snakemake_calls.measure(folder / "suite.yaml", folder, [], [], seconds)
    except KeyboardInterrupt:
        process.said.append("raised")
    return process.said


def test_a_command_waits_for_the_snakemake_that_it_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = called(KeyboardInterrupt(), None, tmp_path, monkeypatch)
    assert said == [("wait", None), signal.SIGINT, ("wait", None), "left", "raised"]


def test_a_call_ends_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = called(subprocess.TimeoutExpired("snakemake", 5), 5, tmp_path, monkeypatch)
    assert said == [("wait", 5), signal.SIGINT, ("wait", None), "left"]
