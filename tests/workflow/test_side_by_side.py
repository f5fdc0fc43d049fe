"""Whole workflows with concurrent runs: on separate devices, and round by round."""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from harness.machine import cores

from ..processes import wait_for
from .conftest import SUITE, Project, make_project

CONFIG = ("side_by_side=true", "cores_per_device=1")
PHYSICAL = {min([core, *cores.siblings(core)]) for core in cores.allowed()}
several = pytest.mark.skipif(len(PHYSICAL) < 2, reason="needs two physical cores")
SIZES = {"devices_per_node": [1, 2], "batch_per_device": [1, 2]}
MIXED = {
    **SUITE,
    "axes": {**SUITE["axes"], "mode": ["train"], **SIZES},
    "exclude": [{"devices_per_node": [2], "batch_per_device": [2]}],
}
ONCE = {**MIXED, "repeats": 1}
RUNS, RUNS_ONCE = 6, 3


def measure(project: Project, *arguments: str, toy: str = "") -> Any:
    """Start a call with a separate folder of locks."""
    return project.start(*arguments, toy=toy, TMPDIR=str(project.folder.parent))


RUNS_ALONE = ("--until", "benchmark")


def finished(project: Project, *arguments: str, cores: str = "all", toy: str = "") -> str:
    workflow = measure(project, "--cores", cores, *arguments, "--config", *CONFIG, toy=toy)
    output, _ = workflow.communicate(timeout=1200)
    assert workflow.returncode == 0, output
    return str(output)


def measured(*projects: Project) -> list[dict[str, Any]]:
    """Return all records, in the order in which they got their devices."""
    actual = [json.loads(text) for project in projects for text in project.records().values()]
    return sorted(actual, key=lambda record: record["started"])


def span(record: dict[str, Any]) -> tuple[float, float]:
    start = datetime.fromisoformat(record["started"]).timestamp()
    return start, start + record["wall_seconds"]


def overlapping(found: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for entry, other in itertools.combinations(found, 2):
        if max(span(entry)[0], span(other)[0]) < min(span(entry)[1], span(other)[1]):
            yield entry, other


def cores_of(record: dict[str, Any]) -> set[int]:
    return {core for rank in record["ranks"] for core in rank["cores"]}


def assert_no_core_is_shared(found: list[dict[str, Any]]) -> None:
    assert {record["status"] for record in found} == {"ok"}
    for entry, other in overlapping(found):
        shared = cores_of(entry) & cores_of(other)
        assert not shared, f"both had cores {shared}: {entry['lease']}, {other['lease']}"


@several
def test_runs_go_side_by_side_on_devices_of_their_own(project: Project) -> None:
    project.write_suite(MIXED)
    finished(project, "medians", toy="sleep=0.1")
    actual = measured(project)
    assert len(actual) == RUNS
    assert_no_core_is_shared(actual)
    small = [record for record in actual if record["case"]["devices_per_node"] == 1]
    assert any(True for _ in overlapping(small)), "they followed each other"
    for record in actual:
        assert len(record["lease"]["devices"]) == record["case"]["devices_per_node"]
    waited = sum(record["lease"]["waited_seconds"] for record in actual)
    spent = sum(record["wall_seconds"] for record in actual)
    assert waited < 0.1 * spent, f"more was started than fits: {waited} s of {spent} s waited"
    # Repeats stay interleaved: no run of a later round ends before all of the previous round
    # started.
    first = max(span(record)[0] for record in actual if record["repeat"] == 1)
    second = min(span(record)[1] for record in actual if record["repeat"] == 2)
    assert first < second, "a run that needs more devices was overtaken by a later round"
    with (project.folder / "results" / "tables" / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == RUNS // 2
    assert {row["side_by_side"] for row in rows} == {"True"}
    again = finished(project, "medians")
    assert "Nothing to be done" in again, again


@several
def test_two_workflows_of_one_machine_share_no_device(project: Project, tmp_path: Path) -> None:
    another = make_project(tmp_path / "another project")
    both = (project, another)
    for one in both:
        one.write_suite(ONCE)
    arguments = ("--cores", "all", *RUNS_ALONE, "--config", *CONFIG)
    hold = tmp_path / "hold"
    hold.touch()
    os.environ["FRAMEBENCH_HOLD"] = str(hold)
    workflows = [measure(project, *arguments, toy="hold=2,sleep=0.4") for project in both]
    del os.environ["FRAMEBENCH_HOLD"]
    try:
        for one in both:
            wait_for(lambda entry=one: entry.pids("scripts/harness", "--output"), "a run of each")
        hold.unlink()
        for workflow in workflows:
            output, _ = workflow.communicate(timeout=1200)
            assert workflow.returncode == 0, output
    finally:
        another.kill_all()
    actual = measured(*both)
    assert len(actual) == 2 * RUNS_ONCE
    assert_no_core_is_shared(actual)
    assert any(record["lease"]["waited_seconds"] > 0.1 for record in actual), (
        "nobody was in the way"
    )


def test_with_one_core_for_snakemake_runs_follow_each_other(project: Project) -> None:
    """Fail if a run that needs more than Snakemake's one core does not run, or not alone."""
    project.write_suite(ONCE)
    finished(project, *RUNS_ALONE, cores="1")
    actual = measured(project)
    assert len(actual) == (RUNS_ONCE if len(cores.allowed()) > 1 else 2)
    assert not list(overlapping(actual))
    assert_no_core_is_shared(actual)


@several
def test_kill_of_the_workflow_frees_the_devices(project: Project) -> None:
    project.write_suite(ONCE)
    workflow = measure(project, "--cores", "all", "--config", *CONFIG, toy="sleep=0.4")
    wait_for(lambda: len(project.pids("start_rank")) >= 2, "two ranks to run")
    os.kill(workflow.pid, signal.SIGKILL)
    workflow.wait()
    project.assert_nothing_left()
    before = project.records()
    finished(project, *RUNS_ALONE, toy="sleep=0.1")
    after = project.records()
    assert len(after) == RUNS_ONCE
    assert all(after[name] == text for name, text in before.items())


def test_searches_are_alone_and_their_batches_those_of_the_runs(project: Project) -> None:
    axes = {**SUITE["axes"], "batch_per_device": ["max"]}
    bounds = {"multiple_of": 2, "at_most": 4}
    project.write_suite({**SUITE, "repeats": 1, "axes": axes, "largest_batch": bounds})
    finished(project, "medians", toy="sleep=0.05")
    folder = project.folder / "results" / "largest_batch"
    tries = [json.loads(path.read_text()) for path in folder.rglob("b*.json")]
    assert [record["status"] for record in tries] == ["ok"] * 4
    actual = measured(project)
    assert not list(overlapping(tries)), "two searches shared the memory"
    assert max(span(entry)[1] for entry in tries) < min(span(entry)[0] for entry in actual)
    limits = {record["memory"]["limit_bytes"] for record in actual}
    assert all(0 < entry["memory"]["limit_bytes"] <= max(limits) for entry in tries)
    with (project.folder / "results" / "tables" / "summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok"] * 2
    assert all("4 (max)" in row["remarks"] for row in rows), "nobody knows that it was searched for"


def test_the_plan_tells(project: Project) -> None:
    plan = project.run("--cores", "1", "plan", "--config", *CONFIG)
    assert plan.returncode == 0, plan.stdout
    assert f"side by side: up to {len(PHYSICAL)} runs with one device" in plan.stdout, plan.stdout
