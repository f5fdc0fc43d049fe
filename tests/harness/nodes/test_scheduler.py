"""Job in a record: SLURM's variables and the output of ``scontrol``."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from harness.provenance import scheduler as module
from harness.provenance.scheduler import scheduler

from ...bench import Bench
from ..validity import assert_valid

#: Output of SLURM 22.05, with user texts that look like its fields.
SHOWN = """\
JobId=7 JobName=wrap
   UserId=me(1000) GroupId=me(1000) MCS_label=N/A
   Priority=4294901752 Nice=7 Account=me QOS=(null)
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=0 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:00 TimeLimit=365-00:00:00 TimeMin=N/A
   SubmitTime=2026-11-24T06:11:50 EligibleTime=2026-11-24T06:11:50
   AccrueTime=2026-11-24T06:11:50
   StartTime=2026-11-24T06:11:52 EndTime=2027-11-24T06:11:52 Deadline=N/A
   SuspendTime=None SecsPreSuspend=0 LastSchedEval=2026-11-24T06:11:52 Scheduler=Backfill
   Partition=main AllocNode:Sid=localhost:4688
   ReqNodeList=(null) ExcNodeList=n4
   NodeList=n[1-2]
   BatchHost=n1
   NumNodes=2 NumCPUs=4 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:1
   TRES=cpu=4,mem=9640M,node=2,billing=4
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryCPU=2410M MinTmpDiskNode=0
   Features=rack1 DelayBoot=00:00:00
   Reservation=gpu-June
   OverSubscribe=NO Contiguous=0 Licenses=toy-L:2 Network=c d
   Command=(null)
   WorkDir=/home/me/a QOS=evil
   Comment=x Account=evil QOS=evil
   StdErr=/tmp/1.out
   StdIn=/dev/null
   StdOut=/tmp/1.out
   Switches=1@00:05:00
   Power=
   TresPerNode=gres:gpu:h100:2
   MailUser=a QOS=evil MailType=FAIL
"""
JOB = {"SLURM_JOB_ID": "7"}
FACTS = {
    "name": "slurm",
    "job": "7",
    "partition": "main",
    "nodelist": "n[1-2]",
    "account": "me",
    "exclusive": True,
}


def recorded(variables: dict[str, str], printed: str | None) -> Any:
    actual = scheduler(variables, lambda command: printed)
    assert_valid(actual, "environment", "scheduler")
    return actual


def test_a_job_is_recorded_as_slurm_shows_it() -> None:
    assert recorded(JOB, SHOWN) == FACTS
    evil = SHOWN.replace("JobName=wrap", "JobName=a Partition=evil Account=evil")
    assert recorded(JOB, evil) == FACTS
    assert "account" not in recorded(JOB, SHOWN.replace("Account=me", "Account=(null)"))
    assert recorded({}, SHOWN) is None


@pytest.mark.parametrize(
    ("printed", "exclusive"), [("NO", True), ("OK", False), ("YES", False), ("USER", False)]
)
def test_a_job_whose_nodes_others_may_share_is_not_exclusive(printed: str, exclusive: bool) -> None:
    shown = SHOWN.replace("OverSubscribe=NO", f"OverSubscribe={printed}")
    assert recorded(JOB, shown)["exclusive"] is exclusive


def test_a_run_that_slurm_ends_at_its_limit_leaves_a_record(toy: Bench, tmp_path: Path) -> None:
    """Fail if a run that SLURM ends at its limit leaves no record.
    The shown text is SLURM 22.05's after SIGTERM."""
    shown = SHOWN.replace("JobState=RUNNING Reason=None", "JobState=COMPLETING Reason=TimeLimit")
    command = tmp_path / "bin" / "scontrol"
    command.parent.mkdir()
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{shown}END\n")
    command.chmod(0o755)
    job = {"SLURM_JOB_ID": "7", "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}
    launcher = toy.start("hang", prefix=("env", *(f"{k}={v}" for k, v in job.items())))
    toy.wait_for_phase("warm-up", 1)
    launcher.send_signal(signal.SIGTERM)
    done = toy.finish(launcher)
    assert done.status == 0, done.stderr
    assert done.record["status"] == "timeout"
    assert done.record["reason"] == "SLURM ended job 7 at its limit of 365-00:00:00"
    toy.assert_nothing_left()
    assert module.limit_reached({"SLURM_JOB_ID": "7"}, lambda command: SHOWN) == ""
    assert module.limit_reached({}, lambda command: shown) == ""


@pytest.mark.parametrize("script", ["exec sleep 60", r"printf 'x\n  A=\351\n'", "exit 3"])
def test_no_answer_fails_a_run(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "scontrol"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(module, "SECONDS", 0.5 if "sleep" in script else 120)
    assert scheduler(JOB) == {"name": "slurm", "job": "7"}
