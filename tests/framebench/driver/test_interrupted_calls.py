"""Commands that call Snakemake: an interruption reaches it, and its end is waited for."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from framebench.runs import snakemake_calls


class Snakemake:
    """A process whose first wait is interrupted; ``said`` has what happened to it."""

    def __init__(self) -> None:
        self.said = list[object]()

    def __call__(self, arguments: list[str]) -> Snakemake:
        return self

    def __enter__(self) -> Snakemake:
        return self

    def __exit__(self, *error: object) -> None:
        self.said.append("left")

    def wait(self) -> int:
        self.said.append("wait")
        if len(self.said) == 1:
            raise KeyboardInterrupt
        return 130

    def send_signal(self, number: int) -> None:
        self.said.append(number)


def test_a_command_waits_for_the_snakemake_that_it_interrupts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Snakemake()
    monkeypatch.setattr(subprocess, "Popen", process)
    with pytest.raises(KeyboardInterrupt):
        snakemake_calls.measure(tmp_path / "suite.yaml", tmp_path, [], [])
    assert process.said == ["wait", signal.SIGINT, "wait", "left"]
