"""Failures on a cluster: calls end, nothing hangs or runs twice, and records stay.
The next call runs the rest, and the report says what happened."""

from __future__ import annotations

import os
import re
import signal
from itertools import combinations
from pathlib import Path

import pytest

from ..csv_rows import read_rows
from ..processes import PATIENCE, wait_for
from ..workflow.snakemake_server import SnakemakeCall
from .project import OnCluster, hosts, overlap

SLOW = "sleep=1.5"  # four steps per run
RUNS = 2
WORDS = ("--until", "benchmark")


def begin(project: OnCluster) -> tuple[SnakemakeCall, int]:
    """Start a workflow of two runs that do not fit at once; return it with the second job.
    One run has finished, for which the job had to wait."""
    project.suite(1, nodes=[3], devices_per_node=[1], batch_per_device=[1, 2])
    others = {job.number for job in project.cluster.queue()}
    workflow = project.start(*WORDS, toy=SLOW)
    wait_for(lambda: project.project.records(), "a run to finish")

    def begun() -> int:
        jobs = [job for job in project.cluster.queue() if job.number not in others]
        jobs.sort(key=lambda job: job.number)
        running = {job.number for job in jobs if job.state == "RUNNING"}
        return next((job.number for job in jobs[1:] if job.number in running), 0)

    return workflow, wait_for(begun, "another job to run")


def ended(workflow: SnakemakeCall) -> str:
    """Return the output of a workflow that must fail, and must not hang."""
    output, _ = workflow.communicate(timeout=PATIENCE)
    assert workflow.returncode != 0, output
    return output


def interruptions(project: OnCluster) -> list[dict[str, str]]:
    return read_rows(project.folder / "results" / "interruptions.csv")


def assert_continues(project: OnCluster, before: dict[str, str], runs: int = RUNS) -> None:
    """Check that the next call runs the missing runs, and changes no earlier record."""
    again = project.run(*WORDS)
    assert again.returncode == 0, again.stdout
    after = project.project.records()
    assert len(after) == runs
    assert all(after[name] == text for name, text in before.items()), "a record was touched"
    records = project.records()
    for one, other in combinations(records, 2):
        if hosts(one) & hosts(other):
            assert not overlap(one, other), "two runs at once on a node"


def test_a_cancelled_job_that_several_runs_share(slurm_project: OnCluster) -> None:
    slurm_project.describe(runs_per_allocation=2)
    slurm_project.suite(2, nodes=[2], devices_per_node=[1], batch_per_device=[1, 2])
    workflow = slurm_project.start(*WORDS, toy=SLOW)
    wait_for(lambda: slurm_project.project.records(), "a run to finish")
    running = [job for job in slurm_project.cluster.queue() if job.state == "RUNNING"]
    number = str(max(job.number for job in running if "[" in job.nodes))
    slurm_project.cluster.command("scancel", number)
    output = ended(workflow)
    before = slurm_project.project.records()
    assert 2 <= len(before) < 4, f"the other runs did not go on: {output}"
    told = interruptions(slurm_project)
    assert len(told) == 4 - len(before), told
    assert {(one["job"], one["status"]) for one in told} == {(number, "CANCELLED")}
    assert_continues(slurm_project, before, runs=4)


def test_a_node_that_fails(slurm_project: OnCluster) -> None:
    workflow, number = begin(slurm_project)
    node = slurm_project.cluster.job(number).nodes.removeprefix("n[")[-2]
    slurm_project.cluster.kill_node(f"n{node}")
    workflow.communicate(timeout=PATIENCE)
    before = slurm_project.project.records()
    slurm_project.cluster.reset()
    statuses = [record["status"] for record in slurm_project.records()]
    # The launcher outlives the other node and says so; else SLURM ends the job with it.
    if "failed" in statuses:
        failed = next(r for r in slurm_project.records() if r["status"] == "failed")
        assert f"n{node}" in failed["reason"]
    else:
        told = interruptions(slurm_project)
        assert {(one["job"], one["status"]) for one in told} == {(str(number), "NODE_FAIL")}
    assert_continues(slurm_project, before)


def test_a_run_that_takes_too_long_ends_before_slurm_ends_it(slurm_project: OnCluster) -> None:
    slurm_project.suite(1, nodes=[2], devices_per_node=[1])
    ran = slurm_project.run(*WORDS, "--config", "time_limit=10", toy="hang")
    assert ran.returncode == 0, ran.stdout
    (record,) = slurm_project.records()
    assert record["status"] == "timeout"
    assert "the time limit of 10 s was reached" in record["reason"]
    assert not slurm_project.cluster.command("squeue", "--noheader").stdout


def test_results_that_no_node_sees_are_named_with_the_node(
    slurm_project: OnCluster, tmp_path: Path
) -> None:
    if slurm_project.cluster.shared:
        pytest.skip(f"the nodes share {slurm_project.cluster.shared}")
    slurm_project.suite(1)
    # Through a process of this machine, which the nodes lack.
    folder = os.open(tmp_path, os.O_RDONLY)
    results = f"/proc/{os.getpid()}/fd/{folder}/results"
    ran = slurm_project.run(*WORDS, "--config", f"results={results}")
    os.close(folder)
    assert ran.returncode == 1, ran.stdout
    said = [line for line in ran.stdout.splitlines() if line.startswith("framebench: ")]
    assert len(said) == 1, ran.stdout
    assert re.match(rf"framebench: {results}: .* not there on node n\d .*allowed: ", said[0])
    assert "Traceback" not in ran.stdout


def test_a_run_that_takes_too_much_memory(slurm_project: OnCluster) -> None:
    """Fail if a run with too much memory is not recorded with its node and account."""
    asked = {"partition": "main", "account": "me-too", "qos": "high", "nodelist": "n[2-3]"}
    slurm_project.describe(memory_gib=1, **asked)
    slurm_project.suite(1, nodes=[2], devices_per_node=[1])
    ran = slurm_project.run(*WORDS, toy="eat")
    assert ran.returncode == 0, ran.stdout
    (record,) = slurm_project.records()
    assert record["status"] == "oom", record["reason"]
    assert "of the limit of 0.900 GiB" in record["reason"], "90 % of what the job was given"
    job = record["environment"]["scheduler"]
    assert {name: job[name] for name in ("partition", "account", "nodelist")} == {
        name: asked[name] for name in ("partition", "account", "nodelist")
    }
    assert hosts(record) == {"n2", "n3"}
    log = (slurm_project.cluster.place.folder / "log" / "slurmctld").read_text()
    assert re.search("account:me-too .* partition:main qos:high ", log), "not what SLURM was told"
    shown = slurm_project.cluster.command("scontrol", "show", "job", job["job"]).stdout
    assert "ReqNodeList=n[2-3]" in shown, shown
    comments = ("squeue", "--states=all", "--noheader", "--format=%i %k")
    listed = slurm_project.cluster.command(*comments).stdout
    (run,) = slurm_project.project.records()
    named = run.removesuffix(".json").replace("/", "_")
    assert re.search(rf"^{job['job']} .*{re.escape(named)}$", listed, re.MULTILINE), listed


def test_a_controller_that_is_restarted(slurm_project: OnCluster) -> None:
    workflow, _ = begin(slurm_project)
    slurm_project.cluster.restart_controller()
    output, _ = workflow.communicate(timeout=PATIENCE)
    assert workflow.returncode == 0, output
    assert [record["status"] for record in slurm_project.records()] == ["ok"] * RUNS


def test_a_call_that_is_killed_is_taken_up_by_the_next(slurm_project: OnCluster) -> None:
    workflow, _ = begin(slurm_project)
    os.killpg(workflow.pid, signal.SIGKILL)
    ended(workflow)
    assert_continues(slurm_project, slurm_project.project.records())
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
    wait_for(
        lambda: not slurm_project.cluster.command("squeue", "--noheader").stdout,
        "the job to be cancelled",
    )
    assert not slurm_project.project.records()
