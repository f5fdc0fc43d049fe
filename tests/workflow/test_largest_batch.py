"""``batch_per_device: max``: found, kept, reported, and within the memory limit."""

from __future__ import annotations

import json
import re
from typing import Any

from ..commands import read_rows
from .conftest import SUITE, Project

LIMIT = 160  # MiB
FILL = "fill=4,sleep=0.2"  # MiB per sample; long enough for checks every 20 ms
MAX: dict[str, Any] = {
    **SUITE,
    "repeats": 1,
    "largest_batch": {"multiple_of": 8, "at_most": 200},
    "axes": {**SUITE["axes"], "mode": ["train"], "batch_per_device": ["max"]},
}


def found(project: Project) -> list[dict[str, Any]]:
    folder = project.folder / "results" / "largest_batch"
    paths = sorted(folder.glob("*/*/*.json"), key=lambda path: path.stem)
    return [json.loads(path.read_text()) for path in paths]


def largest(result: dict[str, Any]) -> int:
    value = result["metrics"]["largest_batch"]["value"]
    assert value == int(value)
    return int(value)


def table(project: Project, name: str) -> list[dict[str, str]]:
    return read_rows(project.folder / "results" / "tables" / f"{name}.csv")


def assert_largest(result: dict[str, Any]) -> None:
    """Check from the attempts that the batch fits, and one step more does not."""
    attempts = {attempt["batch_per_device"]: attempt for attempt in result["attempts"]}
    batch, step = largest(result), result["parameters"]["multiple_of"]
    assert batch % step == 0
    assert (attempts[batch]["status"], attempts[batch + step]["status"]) == ("ok", "oom")
    for attempt in attempts.values():
        if attempt["status"] == "ok":
            assert attempt["peak_host_memory_bytes"] <= attempt["memory_limit_bytes"]
            assert attempt["peak_host_memory_bytes"] >= 4 * 2**20 * attempt["batch_per_device"]
        else:
            assert "out of memory" in attempt["reason"]
            # Checks come every 20 ms: memory filled in between may exceed the limit.
            assert attempt["peak_host_memory_bytes"] < 2 * attempt["memory_limit_bytes"]
    assert max(attempts) <= 2 * batch, "a try beyond twice what fits"


def test_found_within_the_limit_then_nothing_is_left_to_do(project: Project) -> None:
    project.write_suite(MAX)
    project.configure(memory_limit=f"{LIMIT}MiB")
    plan = project.run("--cores", "all", "plan")
    assert "Largest batches to find first: 1 of 1 (Toy), and then" in plan.stdout, plan.stdout
    ran = project.medians(toy=FILL, check=True)
    (result,) = found(project)
    assert_largest(result)
    batch = largest(result)
    assert 20 < batch < LIMIT // 4
    assert "largest batch of toy  Toy: " in ran.stdout, "no progress"
    assert re.search(r"^\d+:\d\d  toy  Toy: .* training", ran.stdout, re.M), "nor of its runs"
    project.report(check=True)
    summary = table(project, "summary")
    assert [(row["batch_per_device"], row["status"]) for row in summary] == [(str(batch), "ok")]
    assert summary[0]["repeats"] == "1"
    (row,) = table(project, "largest_batch")
    assert (row["largest_batch"], row["status"]) == (str(batch), "ok")
    assert 0 < float(row["host_memory_gib"]) <= float(row["memory_limit_gib"])
    assert [attempt["batch_per_device"] for attempt in result["attempts"][:3]] == [8, 16, 32]
    assert len(result["attempts"]) == int(row["attempts"])
    report = (project.folder / "results" / "report.html").read_text()
    assert "Largest batch" in report

    before = project.records()
    project.medians(toy=FILL, check=True)
    assert (project.records(), found(project)) == (before, [result])
    plan = project.run("--cores", "all", "plan")
    assert "Largest batches to find first: 0 of 1" in plan.stdout
    assert re.search(rf"; batch {batch}\b", plan.stdout), "what was found is not in the plan"


def test_what_ends_a_search_otherwise_is_in_every_table(project: Project) -> None:
    project.write_suite({**MAX, "largest_batch": {"multiple_of": 8, "at_most": 16}})
    ran = project.all(toy="raise_from_batch=16")
    assert ran.returncode == 1, ran.stdout
    (result,) = found(project)
    assert (result["status"], result["metrics"]["largest_batch"]["value"]) == ("failed", None)
    assert "at batch 16: RuntimeError: the toy is too small" in result["reason"]
    (searched,) = table(project, "largest_batch")
    assert (searched["largest_batch"], searched["status"]) == ("", "failed")
    (row,) = table(project, "summary")
    assert (row["status"], row["batch_per_device"], row["repeats"]) == ("failed", "16", "1")
    before = project.records()
    assert project.all(toy="raise_from_batch=16").returncode == 1, "another status than before"
    assert project.records() == before

    project.medians("retry=failed", check=True)
    first, second = found(project)
    assert first == result, "the earlier result was changed"
    assert (second["status"], largest(second)) == ("ok", 16)
    (row,) = table(project, "summary")
    assert (row["status"], row["batch_per_device"]) == ("ok", "16")
