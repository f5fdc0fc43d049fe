"""Text of the plan and of a call, names of cases, and the total."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.gpus import Gpu
from core.text import duration
from framebench.cases.fitting import LeftOut
from framebench.machine.local import Machine
from framebench.plan import plan_text
from framebench.plan.job import label_cases
from framebench.plan.plan import Plan
from framebench.plan.plan_text import describe
from framebench.records.sidecars import TOO_SLOW
from framebench.runs.job_table import JobTable

from ..settings import CATALOG, changed, plan, plan_of_suite

H100 = Gpu("NVIDIA H100", 80 * 2**30, "580.95.05", "", "", "9.0")


def test_each_reason_for_leaving_cases_out_is_a_line_in_words(tmp_path: Path) -> None:
    made = plan(tmp_path, changed(framework=["jax", "pytorch", "mxnet"]))
    jax, pytorch, _ = sorted(made.folders, key=lambda case: case.framework != "jax")
    slow = f"{TOO_SLOW}10 minutes; to include it: --config time_budget=1646"
    left = [LeftOut(jax, "too large"), LeftOut(pytorch, "too large"), LeftOut(pytorch, slow)]
    too_large, too_slow = plan_text.left_out(replace(made, left_out=left))
    for text in ("2 cases", "JAX", "ResNet-50 v1.5 training", "too large"):
        assert text in too_large
    assert too_slow.startswith("Too slow for 10 minutes")
    assert too_slow.endswith("--config time_budget=1646")
    assert plan_text.left_out(made) == []


def test_a_call_begins_with_what_it_measures_for_how_long(tmp_path: Path) -> None:
    machine = Machine(2, 0, instruction_sets=frozenset({"avx512f", "amx_bf16"}))
    made = plan_of_suite("quick", tmp_path, machine)
    first, processor = plan_text.opening(made, {"environment": 9, "run": 9}, 0.0).split("\n")
    for text in ("9 environments", "at most 10 minutes", "BERT", "9 frameworks"):
        assert text in first
    for text in ("bfloat16 (AMX)", "MXNet, PyTorch and TensorFlow 2", "the others have none"):
        assert text in processor
    assert not any("no amp" in line for line in plan_text.left_out(made)), "said already"
    one = plan(tmp_path, changed())
    assert plan_text.opening(one, {"run": 2}, 60.0).endswith("training: 2 runs, about 1 min 00 s")


def test_the_plan_of_a_budget_says_what_each_call_answers(tmp_path: Path) -> None:
    text = describe(plan_of_suite("quick", tmp_path, Machine(16, 8, devices=(H100,) * 8)))
    assert "on 8 GPUs" in text
    calls = re.findall(r"^  call (\d): (.+)$", text, re.MULTILINE)
    assert [number for number, _ in calls] == ["1", "2", "3"]
    assert "first figures of" in calls[0][1]
    assert "mixed, 8 GPUs" in " ".join(what for _, what in calls)
    assert re.search(r"all of it: \d+ calls", text)


@pytest.mark.parametrize(
    ("devices", "first", "later"),
    [(0, "training, fp32;", "inference, fp32, compiled "),
     (1, "training, mixed, 1 GPU;", "training, mixed, 1 GPU, without a compiler")],
)  # fmt: skip
def test_a_later_stage_says_how_its_cases_are_compiled(
    tmp_path: Path, devices: int, first: str, later: str
) -> None:
    machine = Machine(16, devices, devices=(H100,) * devices)
    text = describe(plan_of_suite("quick", tmp_path, machine, time_budget=7200))
    assert f"first figures of ResNet-50 v1.5 {first}" in text
    assert f"; ResNet-50 v1.5 {later}" in text


def plan_of(
    tmp_path: Path, steps: int = 10, others: dict[str, Any] | None = None, **axes: Any
) -> Plan:
    suite = {**changed(**axes), "steps": {"warmup": 1, "timed": steps}, "repeats": 2}
    return plan(tmp_path, suite, machine=Machine(8, 0, "24 GiB"), **(others or {}))


def test_a_line_for_each_framework_and_workload_and_a_reason_once(tmp_path: Path) -> None:
    made = plan_of(
        tmp_path,
        framework=["pytorch", "jax"],
        model=["resnet50_v1.5"],
        batch_per_device=[32, 4, 8, 16, 64],
        devices_per_node=[1, 64],
    )
    text = describe(made)
    rows = [line.split()[:2] for line in text.splitlines() if " resnet50_v1.5  " in line]
    assert rows == [["pytorch", "resnet50_v1.5"], ["jax", "resnet50_v1.5"]]
    assert len(re.findall("needs 64 devices per node", text)) == 1
    assert re.search(r"^Left out: 10 cases, .*: needs 64 devices", text, re.MULTILINE), text
    assert text.index("needs 64") < text.index("To do: 20 runs"), "the total is not last"


def test_a_case_is_named_by_what_it_differs_in(tmp_path: Path) -> None:
    made = plan_of(
        tmp_path, framework=["pytorch"], mode=["train", "inference"], batch_per_device=[1, 2]
    )
    names = label_cases(made.folders).values()
    assert sorted(names) == [
        f"pytorch  ResNet-50 v1.5 {mode}  fp32  batch {size}"
        for mode in ("inference", "training")
        for size in (1, 2)
    ]
    one = plan_of(tmp_path, framework=["pytorch"], batch_per_device=[2])
    (case,) = one.folders
    larger = case._replace(batch_per_device=8)
    assert label_cases([case]) == {case: "pytorch  ResNet-50 v1.5 training  fp32"}
    assert label_cases([case, larger]) == {
        case: "pytorch  ResNet-50 v1.5 training  fp32  batch 2",
        larger: "pytorch  ResNet-50 v1.5 training  fp32  batch 8",
    }


def test_the_total_counts_what_is_not_a_run_too(tmp_path: Path) -> None:
    made = plan_of(tmp_path, 10, {"environments": str(tmp_path / "none")}, framework=["pytorch"])
    runs = sum(run.seconds for run in made.pending)
    jobs = JobTable(made, CATALOG).to_do
    rest = [job for job in jobs if job.kind != "run"]
    kinds = {"environment", "reference", "verification", "peak_flops"}
    assert {job.kind for job in rest} == kinds, "the environment is still to be built"
    assert all(job.seconds > 0 for job in rest)
    seconds = runs + sum(job.seconds for job in rest)
    assert made.total_seconds(jobs) == pytest.approx(seconds)
    assert f"In all about {duration(seconds)}" in plan_text.total_lines(made, jobs)
