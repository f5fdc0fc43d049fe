"""kill -9 of a workflow at moments drawn by chance, and another call each time: in the end all is
measured once."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from framebench.records import record_sets

from .conftest import RUNS, Project, make_project

PROJECTS, KILLS = 3, 4
SECONDS = 3.0  # of the start of a call, and of its first runs, in which it is killed
BEHAVIOUR = "sleep=0.2"
WORDS = ("--until", "benchmark")  # the tables take their time, and are made anew each time


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[list[Project]]:
    made = [make_project(tmp_path / f"project {number}") for number in range(PROJECTS)]
    for project in made:
        (project.folder / "tmp").mkdir()
    yield made
    for project in made:
        project.kill_all()


def begin(project: Project) -> subprocess.Popen[str]:
    return project.start(*WORDS, toy=BEHAVIOUR, TMPDIR=str(project.folder / "tmp"))


def kill_one(project: Project, workflow: subprocess.Popen[str], chance: random.Random) -> None:
    """Snakemake alone or with its process group, a launcher, or a rank."""
    kind = chance.choice(["snakemake", "group", "scripts/harness", "start_rank"])
    running = project.pids(kind) if "/" in kind or "_" in kind else []
    with contextlib.suppress(ProcessLookupError):
        if kind == "group":
            os.killpg(workflow.pid, signal.SIGKILL)
        else:
            os.kill(chance.choice(running) if running else workflow.pid, signal.SIGKILL)


def wait_for_moment(
    project: Project, workflow: subprocess.Popen[str], chance: random.Random
) -> None:
    """One of the call: mostly when it measures."""
    if chance.random() < 0.75:
        while workflow.poll() is None and not project.pids("scripts/harness", "--output"):
            time.sleep(0.02)
    with contextlib.suppress(subprocess.TimeoutExpired):
        workflow.wait(chance.uniform(0, SECONDS))


def chain(project: Project, seed: int) -> list[str]:
    """What is wrong when a project was killed and called again so many times."""
    chance = random.Random(seed)
    wrong, seen = [], dict[str, str]()
    for _ in range(KILLS):
        workflow = begin(project)
        wait_for_moment(project, workflow, chance)
        if workflow.poll() is None:
            kill_one(project, workflow, chance)
        workflow.communicate(timeout=600)
        now = project.records()
        wrong += [f"{name} was changed" for name, text in seen.items() if now.get(name) != text]
        seen |= now
    last = begin(project)
    output, _ = last.communicate(timeout=600)
    if last.returncode:
        wrong.append(f"the last call ended with {last.returncode}: {output}")
    now = project.records()
    wrong += [f"{name} was changed" for name, text in seen.items() if now.get(name) != text]
    if len(now) != RUNS or any("retry" in name for name in now):
        wrong.append(f"found {sorted(now)}, not one record of each of {RUNS} runs: {output}")
    found = record_sets.load(project.folder / "results" / "runs")
    wrong += [f"{one.origin}: {one.message}" for one in found.problems]
    for run in found.runs:
        if run.status != "ok" and "SIGKILL" not in run.reason:
            wrong.append(f"{run.origin}: {run.status}: {run.reason}")
    project.assert_nothing_left()
    left = [*(project.folder / "tmp").glob("framebench-*"), *project.folder.rglob("*.part")]
    return wrong + [f"{path} is left" for path in left]


def test_killed_and_called_again(projects: list[Project]) -> None:
    with ThreadPoolExecutor(PROJECTS) as pool:
        wrong = [*itertools.chain(*pool.map(chain, projects, range(PROJECTS)))]
    assert not wrong, "\n".join(wrong)
