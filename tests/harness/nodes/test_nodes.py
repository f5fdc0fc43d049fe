"""Runs over several nodes, here on this machine: one launcher, an agent on each, and one record."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from harness import nodes, provenance
from harness.adapter import Mismatch
from harness.command_line import parse
from harness.kind import Workload

from ...bench import Bench, Finished
from ...processes import wait_for, write_program
from ..validity import assert_outcome, assert_valid

#: Options of a run on two devices of each of two nodes.
TWO_NODES: dict[str, Any] = {"nodes": 2, "devices_per_node": 2}


def srun_on_path(folder: Path) -> str:
    """Return a search path on which ``srun`` is its double."""
    double = Path(__file__).with_name("srun.py")
    script = f'#!/bin/sh\nexec {shlex.join([sys.executable, str(double)])} "$@"\n'
    program = write_program(folder / "bin" / "srun", script)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def run_on_two_nodes(toy: Bench, behaviour: str = "", start: str = "", **options: Any) -> Finished:
    """Run on two nodes, and wait; ``behaviour``: of the toy; ``start``: faults of the double."""
    launcher = start_on_two_nodes(toy, behaviour, start, **options)
    return toy.finish(launcher)


def start_on_two_nodes(
    toy: Bench, behaviour: str = "", start: str = "", **options: Any
) -> subprocess.Popen[str]:
    """Start a run on two nodes; ``behaviour``: of the toy; ``start``: faults of the double."""
    variables = (f"PATH={srun_on_path(toy.folder)}", f"FRAMEBENCH_START={start}")
    return toy.start(behaviour, prefix=("env", *variables), **{**TWO_NODES, **options})


def agents(toy: Bench, node: str) -> list[int]:
    """Return the process ids of the harness's agents on a node, without their ranks."""
    collected = []
    for process in toy.processes(f"SLURMD_NODENAME={node}"):
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        collected += [process] if b"\0agent\0" in command else []
    return collected


def test_all_ranks_of_all_nodes_train_together(toy: Bench) -> None:
    record = run_on_two_nodes(toy, "sleep=0.3").record
    assert (record["status"], record["reason"]) == ("ok", "")
    assert [(rank["rank"], rank["host"]) for rank in record["ranks"]] == [
        (0, "n0"),
        (1, "n0"),
        (2, "n1"),
        (3, "n1"),
    ]
    assert [rank["device"] for rank in record["ranks"]] == ["toy:0", "toy:1"] * 2
    assert len({rank["weights_checksum"] for rank in record["ranks"]}) == 1
    assert record["samples"] == 4 * 4 * 5
    for rank in record["ranks"]:
        assert [entry["bytes"] for entry in rank["preflight"]] == [2**12, 2**24]
        assert all(second > 0 for entry in rank["preflight"] for second in entry["seconds"])
    assert_nodes(record)


def assert_nodes(record: Any) -> None:
    assert [node["node"] for node in record["nodes"]] == ["n0", "n1"]
    for node in record["nodes"]:
        assert node["hardware"]["cores"] == len(os.sched_getaffinity(0))
        assert node["memory"]["peak_bytes"] > 2**22
        assert node["watch"]["samples"] > 0
    assert "watch" not in record, "that of one node would pass for that of all"


def test_a_failed_rank_ends_the_ranks_of_all_nodes(toy: Bench) -> None:
    record = run_on_two_nodes(toy, "raise_rank=3").record
    assert record["status"] == "failed"
    assert record["reason"].startswith("rank 3 on node n1: RuntimeError: the toy is broken")
    assert len(record["ranks"]) == 4


def test_a_wrong_all_reduce_ends_the_run_before_anything_is_timed(toy: Bench) -> None:
    record = run_on_two_nodes(toy, "wrong_sum").record
    assert_outcome(
        record, "failed", "pre-flight: an all-reduce of 4096 bytes over 4 ranks is wrong"
    )
    assert "node n" in record["reason"]
    assert all("step_seconds" not in rank for rank in record["ranks"])


def test_a_time_limit_that_nodes_spend_on_starting_is_a_timeout(toy: Bench) -> None:
    record = run_on_two_nodes(toy, start="without=1", time_limit=7).record
    reached = "the time limit of 7 s was reached during: start; 1 of 2 nodes answered (n0)"
    assert (record["status"], record["reason"]) == ("timeout", reached)


def test_a_node_that_does_not_answer_is_missed(toy: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "ANSWER_SECONDS", 0.1)
    monkeypatch.setenv("FRAMEBENCH_START", "silent=1")
    monkeypatch.setenv("PATH", srun_on_path(toy.folder))
    toy.output.parent.mkdir()
    toy.log.parent.mkdir()
    with pytest.raises(nodes.Missing, match=r"0 of 2 nodes answered \(none\) within 0.1 s"):
        nodes.run_ranks(asked(toy), "run", time.monotonic() + 600)


def test_a_start_that_fails_says_why(toy: Bench) -> None:
    reason = run_on_two_nodes(toy, start="fail=1").record["reason"]
    assert "ended with status 3" in reason
    assert "no such partition" in reason


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_end_of_the_launcher_is_that_of_all_nodes(toy: Bench, number: signal.Signals) -> None:
    launcher = start_on_two_nodes(toy, "hang,grandchild")
    toy.wait_for_phase("warm-up", 4)
    launcher.send_signal(number)
    assert toy.finish(launcher).record is None
    toy.assert_nothing_left(killed=number == signal.SIGKILL)
    # this run also removes leftovers of the previous one
    assert toy.run("").record["status"] == "ok"


def test_a_lost_node_ends_the_run(toy: Bench) -> None:
    launcher = start_on_two_nodes(toy, "hang")
    toy.wait_for_phase("warm-up", 4)
    (agent,) = agents(toy, "n1")
    os.kill(agent, signal.SIGKILL)
    record = toy.finish(launcher).record
    assert_outcome(record, "failed", "node n1 was lost")
    assert [rank["host"] for rank in record["ranks"]] == ["n0", "n0", "n1", "n1"]
    assert [path.name for path in toy.output.parent.iterdir()] == [toy.output.name]
    toy.output.unlink()
    assert toy.run("").record["status"] == "ok"  # the run also removes the folder of the node


def test_nodes_that_are_asked_to_end_leave_no_record(toy: Bench) -> None:
    """Fail if a node that a scheduler ends before the launcher counts as failed."""
    launcher = start_on_two_nodes(toy, "hang")
    toy.wait_for_phase("warm-up", 4)
    (agent,) = agents(toy, "n1")
    os.kill(agent, signal.SIGTERM)
    done = toy.finish(launcher)
    assert (done.record, done.status) == (None, 128 + signal.SIGTERM), done.stderr
    toy.assert_nothing_left()


def test_several_nodes_need_srun(toy: Bench) -> None:
    record = toy.run(variables={"PATH": "/nowhere"}, **TWO_NODES).record
    assert_outcome(record, "failed", "the nodes cannot be started: srun: No such file")


def introduced(name: str, **other: Any) -> nodes.Answer:
    return {
        "node": name,
        "wrong": None,
        "cores": 2,
        "devices": [],
        "hardware": {"cpu": "EPYC", "gpus": []},
        **other,
    }


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"wrong": "another environment"}, "node n1: another environment"),
        ({"cores": 1}, "node n1: 2 device(s) of 1 core(s) need 2 cores; this process may use 1"),
        (
            {"hardware": {"cpu": "Xeon", "gpus": []}},
            "node n1 has the processor Xeon, node n0 has EPYC",
        ),
        (
            {"hardware": {"cpu": "EPYC", "gpus": [{"name": "H100"}]}},
            "node n1 has the GPUs H100, node n0 has none",
        ),
    ],
)
def test_nodes_that_differ_do_not_run_together(
    toy: Bench, other: dict[str, Any], reason: str
) -> None:
    nodes.check(asked(toy), [introduced("n0"), introduced("n1")])
    with pytest.raises(Mismatch) as raised:
        nodes.check(asked(toy), [introduced("n0"), introduced("n1", **other)])
    assert str(raised.value) == reason


def test_a_node_with_too_few_gpus_is_named(toy: Bench) -> None:
    cuda = asked(toy, accelerator="cuda")
    both = introduced("n0", devices=["0", "1"]), introduced("n1", devices=["0"])
    with pytest.raises(Mismatch, match=r"node n1: needs 2 GPU\(s\), has 1"):
        nodes.check(cuda, both)


def asked(toy: Bench, **options: Any) -> Workload:
    return parse(toy.command(**{**TWO_NODES, **options})[2:])


def test_waiting_for_the_agents_ends_with_the_launcher(toy: Bench) -> None:
    launcher = start_on_two_nodes(toy, start="without=1")
    wait_for(lambda: agents(toy, "n0"), "an agent")
    launcher.send_signal(signal.SIGTERM)
    assert toy.finish(launcher).status == 143
    toy.assert_nothing_left()


def test_a_run_on_another_node_than_was_asked_for_has_failed(toy: Bench) -> None:
    here = socket.gethostname()
    record = toy.run(node=f"not-{here}").record
    assert record["status"] == "failed"
    assert record["reason"] == f"is on node {here}, not on the requested node not-{here}"
    assert record["settings"]["node"] == f"not-{here}"


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
    write_program(folder / "scontrol", f"#!/bin/sh\n{script}\n")
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
        "exit 3",
    ],
)
def test_what_slurm_does_not_say_is_no_limit(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", scontrol(tmp_path / "bin", script))
    assert provenance.limit_reached(JOB) == provenance.limit_reached({}) == ""
