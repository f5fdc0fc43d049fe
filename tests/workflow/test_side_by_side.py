"""Whole workflows that share a machine: each run has its devices for itself."""

from __future__ import annotations

import csv
import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import fake_gpus
from ..processes import span
from .conftest import ONE_RUN, SUITE, Project

ONLY_RUNS = ("--cores", "all", "--until", "benchmark")


def measured(*projects: Project) -> list[dict[str, Any]]:
    actual = [json.loads(text) for project in projects for text in project.records().values()]
    assert {record["status"] for record in actual} == {"ok"}
    return sorted(actual, key=lambda record: record["started"])


def overlapping(found: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for entry, other in itertools.combinations(found, 2):
        if max(span(entry)[0], span(other)[0]) < min(span(entry)[1], span(other)[1]):
            yield entry, other


def test_runs_of_one_gpu_go_side_by_side_and_those_of_two_alone(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = fake_gpus.gpus(2, "Example", 40960, "580.95.05", "9.0")
    monkeypatch.setenv("PATH", fake_gpus.install(tmp_path / "bin", listed), prepend=":")
    axes = {**ONE_RUN["axes"], "devices_per_node": [1, 2], "batch_per_device": [1, 2]}
    exclude = [{"devices_per_node": [2], "batch_per_device": [2]}]
    project.write_suite({**SUITE, "axes": axes, "exclude": exclude})
    call = ("--cores", "all", "medians", "--config", "side_by_side=true")
    done = project.run(*call, toy="sleep=0.1", check=True)
    assert "waiting for" not in done.stdout, "more was started than fits"
    actual = measured(project)
    assert len(actual) == 6
    gpu = [record["ranks"][0]["settings"]["cuda_visible_devices"] for record in actual]
    pairs = list(overlapping(actual))
    assert pairs, "they followed each other"
    for pair in pairs:
        assert {record["case"]["devices_per_node"] for record in pair} == {1}
        assert len({gpu[actual.index(record)] for record in pair}) == 2
        threads = {record["ranks"][0]["settings"]["threads"] for record in pair}
        assert threads == {max(1, len(os.sched_getaffinity(0)) // 2)}, "they shared cores"
        assert {len(record["environment"]["hardware"]["gpus"]) for record in pair} == {1}
    with (project.folder / "results" / "tables" / "summary.csv").open(newline="") as file:
        rows = {(row["devices_per_node"], row["side_by_side"]) for row in csv.DictReader(file)}
    assert rows == {("1", "True"), ("2", "False")}
    again = project.run(*call)
    assert "Nothing to be done" in again.stdout, again.stdout


def test_options_of_snakemake_start_no_two_runs_at_once(project: Project) -> None:
    project.write_suite({**SUITE, "axes": ONE_RUN["axes"]})
    done = project.run(*ONLY_RUNS, "--set-threads", "benchmark=1", toy="sleep=0.2", check=True)
    assert not list(overlapping(measured(project)))
    assert "waiting for process" in done.stdout
    assert "--set-threads" in done.stdout


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_call_uses_at_most_its_cores(project: Project) -> None:
    project.write_suite({**ONE_RUN, "axes": {**ONE_RUN["axes"], "devices_per_node": [1, 2]}})
    plan = project.run("--cores", "1", "plan")
    done = project.run("--cores", "1", "--until", "benchmark", check=True)
    (record,) = measured(project)
    assert [len(rank["cores"]) for rank in record["ranks"]] == [1]
    for output in (plan.stdout, done.stdout):
        assert "needs 2 devices per node, here is 1 (x 1 cores)" in output
