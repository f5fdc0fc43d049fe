"""A plan's cases as text, its total, and confirmation of days of measurement."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from core.text import duration
from framebench.machine.local import Machine
from framebench.plan.job import Job, label_cases
from framebench.plan.plan_text import describe
from framebench.plan.planning import Plan, make_plan
from framebench.runs import forecast
from framebench.runs.job_table import JobTable

from ..settings import CATALOG, changed, settings

HERE = Machine(8, 0, "24 GiB")
CLUSTER = {"nodes": 4, "cores_per_node": 8, "memory_gib": 64}


def plan_of(
    tmp_path: Path, steps: int = 10, others: dict[str, Any] | None = None, **axes: Any
) -> Plan:
    suite = {**changed(**axes), "steps": {"warmup": 1, "timed": steps}, "repeats": 2}
    return make_plan(settings(tmp_path, suite, **(others or {})), CATALOG, HERE, None)


def jobs_of(plan: Plan) -> list[Job]:
    return JobTable(plan, CATALOG).to_do


def test_a_line_for_each_framework_and_workload_and_a_reason_once(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path,
        framework=["pytorch", "jax"],
        model=["resnet50_v1.5"],
        batch_per_device=[32, 4, 8, 16, 64],
        devices_per_node=[1, 64],
    )
    text = describe(plan)
    rows = [line.split()[:2] for line in text.splitlines() if " resnet50_v1.5  " in line]
    assert rows == [["pytorch", "resnet50_v1.5"], ["jax", "resnet50_v1.5"]]
    assert len(re.findall(r"batch 4 \.\. 64 \(5\) ", text)) == 2, text
    assert len(re.findall("needs 64 devices per node", text)) == 1
    assert re.search(r"^Left out: 10 cases, .*: needs 64 devices", text, re.MULTILINE), text
    assert text.index("needs 64") < text.index("To do: 20 runs"), "the total is not last"


def test_a_case_is_named_by_what_it_differs_in(tmp_path: Path) -> None:
    plan = plan_of(
        tmp_path, framework=["pytorch"], mode=["train", "inference"], batch_per_device=[1, 2]
    )
    names = label_cases(plan.folders, {}).values()
    assert sorted(names) == [
        f"pytorch  ResNet-50 v1.5 {mode}  fp32  batch {size}"
        for mode in ("inference", "training")
        for size in (1, 2)
    ]
    one = plan_of(tmp_path, framework=["pytorch"], batch_per_device=[2])
    (case,) = one.folders
    larger = case._replace(batch_per_device=8)
    assert label_cases([case, larger], {larger: case}) == {
        case: "pytorch  ResNet-50 v1.5 training  fp32",
        larger: "pytorch  ResNet-50 v1.5 training  fp32  batch 8",
    }


def test_the_total_counts_what_is_not_a_run_too(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 10, {"environments": str(tmp_path / "none")}, framework=["pytorch"])
    runs = sum(run.seconds for run in plan.pending)
    jobs = jobs_of(plan)
    rest = [job for job in jobs if job.kind != "run"]
    kinds = {"environment", "reference", "verification", "peak_flops", "tables"}
    assert {job.kind for job in rest} == kinds, "the environment is still to be built"
    assert all(job.seconds > 0 for job in rest)
    seconds = runs + sum(job.seconds for job in rest)
    assert forecast.total(plan, jobs) == pytest.approx(seconds)
    assert f"In all about {duration(seconds)}" in forecast.lines(plan, jobs)


def test_on_a_cluster_the_total_is_the_least(tmp_path: Path) -> None:
    options = {"cluster": CLUSTER, "accelerator": "cpu"}
    plan = plan_of(tmp_path, 10, options, framework=["pytorch"], nodes=[1, 2])
    alone = sum(run.seconds for run in plan.pending)
    nodes = sum(run.seconds * run.case.nodes for run in plan.pending)
    assert forecast.at_once(plan) == pytest.approx(4 * alone / nodes)
    *_, line = forecast.lines(plan, jobs_of(plan))
    assert "if 4 nodes are free throughout" in line
    assert f"({nodes / 3600:.1f} node hours of runs" in line
