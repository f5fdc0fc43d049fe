"""Search for the largest batch, with made-up memory sizes, and use of its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from framebench.machine.local import Machine
from framebench.plan.plan import Plan
from framebench.plan.plan_text import describe
from framebench.plan.planning import make_plan
from framebench.records.record_sets import load_searches

from .. import saved_records
from ..saved_records import largest_batch_record
from ..settings import CATALOG, changed, plan

HERE = Machine(2, 0, "24 GiB")


SUITE = changed(batch_per_device=[2, "max"], precision=["fp32", "amp"])


def plan_of(tmp_path: Path, suite: object = SUITE, **config: Any) -> Plan:
    given = {"machine": HERE, "results": str(tmp_path / "results"), **config}
    return plan(tmp_path, suite, **given)


def save(tmp_path: Path, plan: Plan, **other: Any) -> None:
    for search in plan.unsearched:
        path = f"results/largest_batch/{search.name}.json"
        saved_records.save(tmp_path, path, largest_batch_record(search.case._asdict(), **other))


def test_a_plan_asks_for_the_searches_first(tmp_path: Path) -> None:
    made = plan_of(tmp_path)
    assert [case.batch_per_device for case in made.folders] == [2, 2]
    assert [str(search.case).split()[-1] for search in made.unsearched] == ["max", "max"]
    assert {case.batch_per_device for case in made.cases} == {2, "max"}
    text = describe(made)
    assert "Largest batches to find first: 2 of 2 (PyTorch), and then" in text


def test_what_was_found_is_planned_like_any_other_batch(tmp_path: Path) -> None:
    before = plan_of(tmp_path)
    save(tmp_path, before)
    after = plan_of(tmp_path)
    assert not after.unsearched
    assert sorted(case.batch_per_device for case in after.folders) == [2, 2, 24, 24]
    assert len(after.runs) == 2 * len(before.runs)
    asked = plan_of(tmp_path, changed(batch_per_device=[2, 24], precision=["fp32", "amp"]))
    assert set(asked.folders.values()) == set(after.folders.values()), "another name for the same"
    both = plan_of(tmp_path, changed(batch_per_device=[2, 24, "max"], precision=["fp32", "amp"]))
    assert sorted(run.path for run in both.runs) == sorted(run.path for run in asked.runs)
    updated = make_plan(before.settings, CATALOG, HERE, None, before)
    assert {run.path for run in updated.runs} == {run.path for run in after.runs}
    assert len({run.priority for run in updated.runs}) == len(updated.runs)
    repeats = [run.repeat for run in sorted(updated.runs, key=lambda run: -run.priority)]
    assert repeats == sorted(repeats)


def test_a_search_without_a_batch_is_run_once_where_it_ended(tmp_path: Path) -> None:
    many = {**SUITE, "repeats": 7}
    save(tmp_path, plan_of(tmp_path, many), status="failed", reason="at batch 24: no", largest=None)
    made = plan_of(tmp_path, many)
    runs = [run for run in [*made.runs, *made.reserve] if run.case.batch_per_device == 24]
    assert [run.repeat for run in runs] == [1, 1]
    assert len(plan_of(tmp_path, many, retry="failed").unsearched) == 2
    assert len(plan_of(tmp_path, many, retry="oom").unsearched) == 0


@pytest.mark.parametrize(
    ("suite", "config"),
    [
        ({"largest_batch": {"multiple_of": 4}}, {}),
        ({}, {"memory_limit": "50%"}),
    ],
)
def test_a_result_is_of_what_decided_it(
    tmp_path: Path, suite: dict[str, Any], config: dict[str, Any]
) -> None:
    save(tmp_path, plan_of(tmp_path))
    same = {**SUITE, "steps": {"warmup": 3, "timed": 9}, "repeats": 3}
    assert not plan_of(tmp_path, same, seed=7).unsearched, "steps do not decide what fits"
    assert len(plan_of(tmp_path, {**SUITE, **suite}, **config).unsearched) == 2


def test_a_result_is_of_the_memory_that_there_was(tmp_path: Path) -> None:
    save(tmp_path, plan_of(tmp_path))
    assert not plan_of(tmp_path).unsearched
    assert plan_of(tmp_path, machine=Machine(2, 0, "48 GiB")).unsearched


def test_what_is_no_result_is_named(tmp_path: Path) -> None:
    made = plan_of(tmp_path)
    save(tmp_path, made)
    path = tmp_path / "results" / "largest_batch" / f"{made.unsearched[0].name}.json"
    path.write_text("{}")
    results, problems = load_searches(tmp_path / "results" / "largest_batch")
    assert len(results) == 1
    assert [problem.origin for problem in problems] == [
        f"largest_batch/{made.unsearched[0].name}.json"
    ]
    (again,) = plan_of(tmp_path).unsearched
    assert again.name == f"{made.unsearched[0].name}-retry1"
