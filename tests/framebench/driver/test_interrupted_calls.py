"""Commands that call Snakemake: an interruption reaches it, and its end is waited for."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from framebench.runs import snakemake_calls

from ...conftest import ROOT

#: Stands for Python with Snakemake, and notes an interruption some time after it; ends by itself.
SNAKEMAKE = """#!/bin/sh
trap 'sleep 0.5; echo > ended; exit 130' INT
echo begun
for n in $(seq 600); do sleep 0.1; done
exit 1
"""
CALL = """
import subprocess
import sys
from pathlib import Path
sys.path[:0] = [FOLDERS]
from framebench.runs import snakemake_calls
wait = subprocess.Popen.wait
def told(process, *seconds):
    print("waiting", flush=True)
    return wait(process, *seconds)
subprocess.Popen.wait = told
sys.executable = "./snakemake"
try:
    snakemake_calls.measure(Path("suite.yaml"), Path("results"), [], [])
except KeyboardInterrupt:
    print("interrupted, ended:", Path("ended").exists())
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "snakemake"
    program.write_text(SNAKEMAKE)
    program.chmod(0o755)


def test_a_command_waits_for_the_snakemake_that_it_interrupts() -> None:
    folders = ", ".join(repr(str(ROOT / name)) for name in ("workflow", "scripts"))
    words = [sys.executable, "-c", CALL.replace("FOLDERS", folders)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert {process.stdout.readline() for _ in range(2)} == {"begun\n", "waiting\n"}
        process.send_signal(signal.SIGINT)
        assert process.stdout.read().endswith("interrupted, ended: True\n")


def test_a_call_ends_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "./snakemake")
    snakemake_calls.measure(Path("suite.yaml"), Path("results"), [], [], 0.1)
