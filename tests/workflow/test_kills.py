"""Random kill -9 of a workflow, and further calls: all is measured once, no process is left."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ..harness.validity import assert_valid
from .conftest import CASES, SUITE, Project, make_project
from .snakemake_server import SnakemakeCall

MOMENTS, PROJECTS = 9, 3
MOST = 4  # most moments per call
# seconds after the start of a call, and of its runs, within which processes are killed
SECONDS = 1.5
LOOK = 0.1  # seconds between two scans of all processes, which are expensive
REPEATS = 3  # repeats to add when everything is measured, so that there is a run to kill
BEHAVIOUR = "sleep=0.05"
WORDS = ("--until", "benchmark")  # without tables, which take time
#: Command-line arguments of a launcher and of the processes that start it.
LAUNCHERS = ("scripts/harness", "--output")


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[list[Project]]:
    made = [make_project(tmp_path / f"project {number}") for number in range(PROJECTS)]
    for project in made:
        (project.folder / "tmp").mkdir()
    yield made
    for project in made:
        project.kill_all()


def begin(project: Project) -> SnakemakeCall:
    return project.start(*WORDS, toy=BEHAVIOUR, TMPDIR=str(project.folder / "tmp"))


def kill_in_a_run(project: Project, chance: random.Random) -> bool:
    """Kill a launcher or a rank, after which the call continues; return whether there was one."""
    running = project.pids(*chance.choice([LAUNCHERS, ("start_rank",)]))
    with contextlib.suppress(ProcessLookupError):
        if running:
            os.kill(chance.choice(running), signal.SIGKILL)
    return bool(running)


def kill_call(project: Project, workflow: SnakemakeCall, chance: random.Random) -> None:
    """Kill Snakemake, its process group, or a launcher."""
    kind = chance.choice(["snakemake", "snakemake", "group", "group", "launcher"])
    running = project.pids(*LAUNCHERS) if kind == "launcher" else []
    with contextlib.suppress(ProcessLookupError):
        if kind == "group":
            os.killpg(workflow.pid, signal.SIGKILL)
        else:
            os.kill(chance.choice(running) if running else workflow.pid, signal.SIGKILL)


def wait_for_moment(project: Project, workflow: SnakemakeCall, chance: random.Random) -> bool:
    """Return whether the call still runs at a random moment, mostly while it measures."""
    if chance.random() < 0.75:
        while workflow.poll() is None and not project.pids(*LAUNCHERS):
            time.sleep(LOOK)
    with contextlib.suppress(subprocess.TimeoutExpired):
        workflow.wait(chance.uniform(0, SECONDS))
    return workflow.poll() is None


def write_suite(project: Project, measured: int) -> int:
    """Write the suite, with some runs left to measure; return its number of runs."""
    repeats = REPEATS * (measured // (REPEATS * CASES) + 1)
    project.write_suite({**SUITE, "repeats": repeats})
    return repeats * CASES


def killed_call(project: Project, chance: random.Random, most: int) -> tuple[int, str]:
    """Kill a call at up to ``most`` moments; return their number, and an unexplained failure."""
    workflow = begin(project)
    moments = 0
    for _ in range(chance.randrange(most)):
        if wait_for_moment(project, workflow, chance):
            moments += kill_in_a_run(project, chance)
    if wait_for_moment(project, workflow, chance):
        kill_call(project, workflow, chance)
        moments += 1
    output, _ = workflow.communicate(timeout=600)
    failed = workflow.returncode and not moments
    return moments, f"it failed by itself: {output}" if failed else ""


def chain(project: Project, seed: int, moments: int) -> list[str]:
    """Return the faults after kills at ``moments`` moments, with a new call after each end."""
    chance = random.Random(seed)
    wrong, seen, runs = [], dict[str, str](), 0
    while moments > 0 and not wrong:
        runs = write_suite(project, len(seen))
        killed, problem = killed_call(project, chance, min(MOST, moments))
        moments -= killed
        wrong += [problem] if problem else []
        now = project.records()
        wrong += [f"{name} was changed" for name, text in seen.items() if now.get(name) != text]
        seen |= now
    last = begin(project)
    output, _ = last.communicate(timeout=600)
    if last.returncode:
        wrong.append(f"the last call ended with {last.returncode}: {output}")
    now = project.records()
    wrong += [f"{name} was changed" for name, text in seen.items() if now.get(name) != text]
    if len(now) != runs or any("retry" in name for name in now):
        wrong.append(f"found {sorted(now)}, not one record of each of {runs} runs: {output}")
    for name, text in now.items():
        record = json.loads(text)
        assert_valid(record)
        if record["status"] != "ok" and "SIGKILL" not in record["reason"]:
            wrong.append(f"{name}: {record['status']}: {record['reason']}")
    project.assert_nothing_left()
    return wrong


def test_killed_at_random_moments_and_called_again(projects: list[Project]) -> None:
    shares = [len(range(number, MOMENTS, PROJECTS)) for number in range(PROJECTS)]
    with ThreadPoolExecutor(PROJECTS) as pool:
        wrong = [*itertools.chain(*pool.map(chain, projects, range(PROJECTS), shares))]
    assert not wrong, "\n".join(wrong)
