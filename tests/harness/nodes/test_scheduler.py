"""SLURM's job of a run, and its time limit, as ``scontrol`` shows it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from harness.provenance import environment

from ...bench import Bench
from ..validity import assert_valid

#: Output of SLURM 22.05 after SIGTERM, with user texts that look like its fields.
SHOWN = """\
JobId=7 JobName=a Reason=None TimeLimit=1
   UserId=me(1000) GroupId=me(1000) MCS_label=N/A
   Priority=4294901752 Nice=7 Account=me QOS=(null)
   JobState=COMPLETING Reason=TimeLimit Dependency=(null)
   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:00 TimeLimit=365-00:00:00 TimeMin=N/A
   Command=(null)
   Comment=x Reason=evil TimeLimit=evil
"""
JOB = {"SLURM_JOB_ID": "7"}


def scontrol(folder: Path, script: str) -> str:
    """Return a PATH with a double of ``scontrol``."""
    folder.mkdir()
    command = folder / "scontrol"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_a_run_that_slurm_ends_at_its_limit_leaves_a_record(toy: Bench, tmp_path: Path) -> None:
    job = {**JOB, "PATH": scontrol(tmp_path / "bin", f"cat <<'END'\n{SHOWN}END")}
    launcher = toy.start("hang", prefix=("env", *(f"{k}={v}" for k, v in job.items())))
    toy.wait_for_phase("warm-up", 1)
    launcher.send_signal(signal.SIGTERM)
    done = toy.finish(launcher)
    assert done.status == 0, done.stderr
    assert done.record["status"] == "timeout"
    assert done.record["reason"] == "SLURM ended job 7 at its limit of 365-00:00:00"
    assert done.record["environment"]["scheduler"] == {"name": "slurm", "job": "7"}
    assert_valid(done.record)
    toy.assert_nothing_left()


@pytest.mark.parametrize(
    "script",
    [
        f"cat <<'END'\n{SHOWN.replace('Reason=TimeLimit', 'Reason=None')}END",
        "exec sleep 60",
        r"printf 'x\n  A=\351\n'",
        "exit 3",
    ],
)
def test_what_slurm_does_not_say_is_no_limit(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", scontrol(tmp_path / "bin", script))
    monkeypatch.setattr(environment, "SECONDS", 0.5 if "sleep" in script else 120)
    assert environment.limit_reached(JOB) == environment.limit_reached({}) == ""
