"""Failures on a cluster: nothing hangs or runs twice, and the next call continues."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Collection
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ..commands import read_rows
from ..processes import PATIENCE, wait_for
from ..workflow.snakemake_server import SnakemakeCall
from . import isolation
from .cluster import Job
from .conftest import OnCluster, hosts, overlap

WORDS = ("--until", "benchmark")


def start_held(project: OnCluster) -> tuple[SnakemakeCall, Path]:
    """Start a call whose inference runs wait in their second step while the file exists."""
    hold = project.folder / "hold"
    return project.start(*WORDS, toy="hold_inference=2", FRAMEBENCH_HOLD=str(hold)), hold


def wait_for_held_job(project: OnCluster, earlier: Collection[int] = ()) -> Job:
    """Wait until a running job of several nodes, none of the ``earlier``, has ranks; return it."""

    def found() -> Job | None:
        jobs = project.cluster.queue() if project.project.pids("start_rank") else []
        several = [job for job in jobs if job.state == "RUNNING" and "[" in job.nodes]
        return next((job for job in several if job.number not in earlier), None)

    job: Job = wait_for(found, "a job with ranks on several nodes")
    return job


def ended(workflow: SnakemakeCall) -> str:
    """Return the output of a workflow that must fail, and must not hang."""
    output, _ = workflow.communicate(timeout=PATIENCE)
    assert workflow.returncode != 0, output
    return output


def assert_cancelled(project: OnCluster) -> None:
    """Check that nothing is left of an interrupted call on the cluster."""
    wait_for(
        lambda: not project.cluster.command("squeue", "--noheader").stdout,
        "the job to be cancelled",
    )
    assert not project.project.records()


def slow_to_answer(project: OnCluster, command: str, answering: Path) -> dict[str, str]:
    """Return variables with which a command of SLURM acts at once and answers after five seconds.
    Meanwhile the file ``answering`` exists."""
    path = project.cluster.environment.get("PATH", isolation.SEARCHED)
    real = shutil.which(command, path=path)
    slow = project.folder / "slow" / command
    slow.parent.mkdir()
    slow.write_text(
        f'#!/bin/sh\nanswer=$({real} "$@") || exit\n'
        f'touch "{answering}"\nsleep 5\nrm "{answering}"\necho "$answer"\n'
    )
    slow.chmod(0o755)
    return {"PATH": f"{slow.parent}{os.pathsep}{path}"}


def interruptions(project: OnCluster) -> list[dict[str, str]]:
    return read_rows(project.folder / "results" / "interruptions.csv")


def assert_never_twice_on_a_node(records: list[dict[str, Any]]) -> None:
    for entry, other in combinations(records, 2):
        if hosts(entry) & hosts(other):
            assert not overlap(entry, other), "two runs at once on a node"


def assert_continues(project: OnCluster, before: dict[str, str], runs: int) -> None:
    """Check that the next call runs the missing runs, and changes no earlier record."""
    again = project.run(*WORDS)
    assert again.returncode == 0, again.stdout
    after = project.project.records()
    assert len(after) == runs
    assert all(after[name] == text for name, text in before.items()), "a record was touched"
    assert_never_twice_on_a_node(project.records())


def test_a_cancelled_job_among_those_that_several_runs_share(slurm_project: OnCluster) -> None:
    groups = ("--groups", "benchmark=runs", "--group-components", "runs=2", "--cores", "2")
    slurm_project.suite(2, nodes=[2], mode=["train", "inference"])
    hold = slurm_project.folder / "hold"
    hold.touch()
    held = {"toy": "hold_inference=2", "FRAMEBENCH_HOLD": str(hold)}
    workflow = slurm_project.start(*WORDS, *groups, **held)
    number = str(wait_for_held_job(slurm_project).number)
    slurm_project.cluster.command("scancel", number)
    hold.unlink()
    output = ended(workflow)
    before = slurm_project.project.records()
    assert 2 <= len(before) < 4, f"the other runs did not go on: {output}"
    records = slurm_project.records()
    shared = [
        pair
        for pair in combinations(records, 2)
        if len({record["environment"]["scheduler"]["job"] for record in pair}) == 1
    ]
    assert shared, "no two runs shared a job"
    assert not any(overlap(*pair) for pair in shared)
    noted = interruptions(slurm_project)
    assert len(noted) == 4 - len(before), noted
    assert_continues(slurm_project, before, runs=4)


def test_a_node_that_fails(slurm_project: OnCluster) -> None:
    slurm_project.suite(1, nodes=[3], mode=["inference"])
    workflow, hold = start_held(slurm_project)
    hold.touch()
    job = wait_for_held_job(slurm_project)
    node = job.nodes.removeprefix("n[")[-2]
    slurm_project.cluster.kill_node(f"n{node}")
    workflow.communicate(timeout=PATIENCE)
    hold.unlink()
    before = slurm_project.project.records()
    slurm_project.cluster.reset()
    # The launcher either outlives the other node and reports its loss, or SLURM ends the whole job.
    for record in slurm_project.records():
        assert record["status"] == "failed"
        assert f"n{node}" in record["reason"]
    if not before:
        noted = interruptions(slurm_project)
        assert {(entry["job"], entry["status"]) for entry in noted} == {
            (str(job.number), "NODE_FAIL")
        }
    assert_continues(slurm_project, before, runs=1)


def test_runs_that_take_too_long_or_too_much_memory(slurm_project: OnCluster) -> None:
    slurm_project.describe(memory_gib=1, partition="main")
    extra = "slurm_extra='--exclusive --nodelist=n[2-3]'"
    defaults = "--default-resources", "slurm_account='me-too'", "qos='high'", extra
    variants = {does: {"variables": {"FRAMEBENCH_TOY": does}} for does in ("hang", "eat")}
    slurm_project.suite(1, nodes=[2], variants=variants)
    limits = "--config", "time_limit=30", "memory_limit=90%"
    ran = slurm_project.run(*WORDS, *defaults, *limits)
    assert ran.returncode == 0, ran.stdout
    records = slurm_project.records()
    reasons = {record["status"]: record["reason"] for record in records}
    assert [*sorted(reasons)] == ["oom", "timeout"], reasons
    assert "the time limit of 30 s was reached" in reasons["timeout"]
    assert "of the limit of 0.900 GiB" in reasons["oom"], "90 % of what the job was given"
    for record in records:
        job = record["environment"]["scheduler"]["job"]
        assert hosts(record) == {"n2", "n3"}
    log = (slurm_project.cluster.place.folder / "log" / "slurmctld").read_text()
    assert re.search("account:me-too .* partition:main qos:high ", log), "not what SLURM was told"
    shown = slurm_project.cluster.command("scontrol", "show", "job", job).stdout
    assert "ReqNodeList=n[2-3]" in shown, shown
    assert not slurm_project.cluster.command("squeue", "--noheader").stdout


def test_a_killed_call_is_taken_up_by_the_next(slurm_project: OnCluster) -> None:
    slurm_project.suite(1, nodes=[3], mode=["inference"], batch_per_device=[1, 2])
    workflow, hold = start_held(slurm_project)
    hold.touch()
    first = wait_for_held_job(slurm_project)
    hold.unlink()
    before = wait_for(slurm_project.project.records, "a run to finish")
    hold.touch()
    workflow.read_until("  toy  Toy: ")
    wait_for_held_job(slurm_project, [first.number])
    os.killpg(workflow.pid, signal.SIGKILL)
    ended(workflow)
    again = slurm_project.start(*WORDS)
    again.read_until("waiting for 1 of its jobs that still run")
    hold.unlink()
    output, _ = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, output
    after = slurm_project.project.records()
    assert len(after) == 2
    assert before.items() <= after.items(), "a record was touched"
    records = slurm_project.records()
    assert [record["status"] for record in records] == ["ok"] * 2
    assert_never_twice_on_a_node(records)
    assert not slurm_project.cluster.command("squeue", "--noheader").stdout


def test_an_interrupted_call_cancels_its_job(slurm_project: OnCluster) -> None:
    slurm_project.suite(1)
    workflow = slurm_project.start(*WORDS, toy="hang")
    wait_for(
        lambda: [job for job in slurm_project.cluster.queue() if job.state == "RUNNING"],
        "a job to run",
    )
    os.killpg(workflow.pid, signal.SIGINT)
    ended(workflow)
    assert_cancelled(slurm_project)


@pytest.mark.parametrize("command", ["sbatch", "squeue"])
def test_a_call_interrupted_while_slurm_answers_cancels_its_job(
    slurm_project: OnCluster, command: str
) -> None:
    slurm_project.suite(1)
    answering = slurm_project.folder / "answering"
    variables = slow_to_answer(slurm_project, command, answering)
    workflow = slurm_project.start(*WORDS, toy="hang", **variables)
    wait_for(
        lambda: answering.exists() and slurm_project.cluster.queue(), f"{command} with a queued job"
    )
    os.kill(workflow.pid, signal.SIGINT)
    ended(workflow)
    assert_cancelled(slurm_project)
