"""Lock of a results folder: one of two calls measures."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ..processes import PATIENCE, wait_for, write_program
from .conftest import SUITE, Project, held_call

BUSY = "another Framebench is measuring into this folder"
RUNS = 2


@pytest.fixture
def held(project: Project) -> Project:
    project.write_suite({**SUITE, "axes": {**SUITE["axes"], "mode": ["train"]}})
    return project


def records(project: Project, results: str) -> dict[str, str]:
    runs = project.folder / results / "runs"
    return {str(path.relative_to(runs)): path.read_text() for path in runs.rglob("*.json")}


def test_a_call_on_this_machine_waits_for_a_job_that_still_measures(
    held: Project, tmp_path: Path
) -> None:
    """Fail if a call does not wait for a SLURM job of a killed call; ``squeue`` is a double."""
    (held.folder / "results").mkdir()
    jobs = held.folder / "results" / ".slurm-jobs"
    jobs.write_text("57-cd\n")
    arguments = ("--cores", "all", "--until", "benchmark")
    refused = held.run(*arguments, PATH=os.defpath)
    assert refused.returncode == 1, refused.stdout
    assert ".slurm-jobs: found jobs of an earlier call" in refused.stdout, refused.stdout
    assert "Traceback" not in refused.stdout
    running, asked = tmp_path / "running", tmp_path / "asked"
    script = f'#!/bin/sh\ntest ! -e {running} || echo "7|RUNNING"\necho "$*" > {asked}\n'
    squeue = write_program(tmp_path / "bin" / "squeue", script)
    running.touch()
    call = held.start(*arguments, PATH=f"{squeue.parent}{os.pathsep}{os.environ['PATH']}")
    wait_for(asked.exists, "SLURM to be asked")
    assert not records(held, "results")
    running.unlink()
    output, _ = call.communicate(timeout=PATIENCE)
    assert call.returncode == 0, output
    assert "waiting for 1 of its jobs that still run (7)" in output
    assert len(records(held, "results")) == RUNS
    assert "--name=57-cd" in asked.read_text()
    assert not jobs.exists()


def test_an_executor_without_a_described_cluster_submits_nothing(held: Project) -> None:
    ran = held.run("--executor", "slurm", "--jobs", "2", "--until", "benchmark")
    assert ran.returncode == 1, ran.stdout
    assert "cluster: found nothing, but jobs would not run on this machine" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert not records(held, "results")


def test_a_call_that_planned_first_loses_nothing_of_another(held: Project) -> None:
    hold = held.folder / "first.hold"
    hold.touch()
    first = held_call(held, "first", "results")
    wait_for((held.folder / "first").exists, "the first call to know what is to be done")
    second = held_call(held, "second", "results")
    output, _ = second.communicate(timeout=PATIENCE)
    before = records(held, "results")
    plan = held.run("plan")
    hold.unlink()
    other, _ = first.communicate(timeout=PATIENCE)
    after = records(held, "results")
    assert all(after.get(name) == text for name, text in before.items()), "records were lost"
    assert sorted(Path(name).stem for name in after) == ["r1", "r2"], output + other
    assert all('"status": "ok"' in record for record in after.values()), after
    assert (output + other).count("training  fp32  repeat ") == RUNS, "a run was made twice"
    assert BUSY in output
    assert second.returncode != 0
    assert first.returncode == 0, other
    assert plan.returncode == 0, f"a plan needs no lock: {plan.stdout}"
