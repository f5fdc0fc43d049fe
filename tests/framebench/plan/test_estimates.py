"""Estimates for a machine that has no records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.case import Case
from core.gpus import Gpu
from framebench.cases.fitting import Capacity
from framebench.config.catalog import Catalog
from framebench.config.settings import load_settings
from framebench.machine.local import Machine
from framebench.plan import costs, estimates
from framebench.plan.plan import Plan, note_expected
from framebench.plan.planning import make_plan
from framebench.records.sidecars import load_expected
from framebench.runs.job_table import JobTable

from ..settings import CATALOG, CONFIG, SUITE, plan, plan_of_suite

AVX2 = frozenset({"avx2", "fma"})
SAPPHIRE_RAPIDS = AVX2 | {"avx512f", "avx512_bf16", "amx_bf16"}


def planned(suite: str, tmp_path: Path, sets: frozenset[str]) -> Plan:
    return plan_of_suite(suite, tmp_path, Machine(2, 0, instruction_sets=sets))


def test_a_core_without_avx512_is_expected_to_be_slower(tmp_path: Path) -> None:
    slow, fast = (planned("careful", tmp_path, sets) for sets in (AVX2, SAPPHIRE_RAPIDS))
    seconds = {run.case: run.seconds for run in fast.runs}
    for run in slow.runs:
        assert run.seconds > 1.5 * seconds[run.case], run.case


@pytest.mark.parametrize("sets", [AVX2, SAPPHIRE_RAPIDS])
def test_a_time_budget_is_what_a_call_takes_besides_environments(
    tmp_path: Path, sets: frozenset[str]
) -> None:
    plan = planned("quick", tmp_path, sets)
    pending = JobTable(plan, CATALOG).to_do
    other = sum(job.seconds for job in pending if job.kind == "environment")
    assert plan.total_seconds(pending) == pytest.approx(600 + other)
    measuring = sum(job.seconds for job in pending if job.kind != "environment")
    assert measuring < 600, "the first round"


def slow_at(framework: str) -> Catalog:
    """Return the catalog with a framework that trains convolutional networks 100 times slower."""
    declaration = CATALOG.frameworks[framework] | {"slow_rates": {"train": {"cnn": 2e9}}}
    return replace(CATALOG, frameworks=CATALOG.frameworks | {framework: declaration})


def quick_of(
    results: Path, catalog: Catalog, sets: frozenset[str] = AVX2, **keys: Any
) -> tuple[set[Case], set[Case]]:
    """Return the planned cases of ``quick``, and the cases left out because of their time."""
    settings = load_settings({**CONFIG, "suite": "quick", "results": str(results), **keys}, catalog)
    plan = make_plan(settings, catalog, Machine(2, 0, instruction_sets=sets), None)
    left_out = {left_out.case for left_out in plan.left_out if "time_budget=" in left_out.reason}
    note_expected(plan)
    noted = {case.case for case in load_expected(results)[0] if "time_budget=" in case.left_out}
    assert {case._replace(source="") for case in noted} == left_out, (
        "the page names other cases as left out"
    )
    return {*plan.folders}, left_out


@pytest.mark.parametrize("sets", [AVX2, SAPPHIRE_RAPIDS])
def test_a_time_budget_is_not_spent_on_steps_far_slower_than_those_of_others(
    tmp_path: Path, sets: frozenset[str]
) -> None:
    kept, left_out = quick_of(tmp_path, slow_at("mxnet"), sets)
    ours = {case for case in left_out if case.framework == "mxnet"}
    assert {(case.mode, case.model) for case in ours} == {("train", "resnet50_v1.5")}
    assert {case.framework for case in left_out - ours} <= {"megengine"}
    assert {(case.mode, case.model) for case in kept if case.framework == "mxnet"} >= {
        ("inference", "resnet50_v1.5"), ("train", "bert_base"),
    }  # fmt: skip


@pytest.mark.parametrize("keys", [{"time_budget": 20_000}, {"frameworks": "mxnet"}])
def test_slow_steps_are_measured_with_more_time_or_without_competitors(
    tmp_path: Path, keys: dict[str, Any]
) -> None:
    kept, left_out = quick_of(tmp_path, slow_at("mxnet"), **keys)
    assert not left_out
    slow = {case for case in kept if case.framework == "mxnet" and case.mode == "train"}
    assert {case.model for case in slow} == {"resnet50_v1.5", "bert_base"}


def test_a_verification_is_paid_for_once(tmp_path: Path) -> None:
    """Fail if verifying amp and fp32 counts fp32 twice, or if each batch counts by itself."""

    def checks(**axes: list[Any]) -> float:
        made = plan(tmp_path, {"time_budget": 600, "axes": {**SUITE["axes"], **axes}})
        return sum(case.checks for case in costs.measured_cases(made, {}, 0.0))

    alone, both = checks(precision=["fp32"]), checks(precision=["amp", "fp32"])
    assert both > alone
    assert checks(precision=["amp"]) == pytest.approx(both)
    assert checks(precision=["amp"], batch_per_device=[2, 4]) == pytest.approx(both)
    assert checks(precision=["fp32"], batch_per_device=[2, 4]) == pytest.approx(alone)


#: Published images/s of ResNet-50: V100 from DLPerf, A100 and T4 from NVIDIA, H100 between others'
#: figures.
PUBLISHED = [
    ("Tesla V100-SXM2-16GB", "train", "fp32", 367),
    ("Tesla V100-SXM2-16GB", "train", "amp", 1200),
    ("NVIDIA A100-SXM4-80GB", "train", "tf32", 938),
    ("NVIDIA A100-SXM4-80GB", "train", "amp", 2470),
    ("NVIDIA H100 80GB HBM3", "train", "amp", 4900),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "train", "amp", 4900 / 7),
    ("Tesla T4", "inference", "fp32", 415),
    ("Tesla T4", "inference", "amp", 1198),
]


@pytest.mark.parametrize(("name", "mode", "precision", "published"), PUBLISHED)
def test_a_gpu_is_expected_to_be_about_as_fast_as_published(
    name: str, mode: str, precision: str, published: float
) -> None:
    gpu = Gpu(name, 16 * 2**30, "580.95.05", "", "")
    case = Case("pytorch", "resnet50_v1.5", mode, 1, 1, 1, precision, "none")
    capacity = Capacity("cuda", Machine(8, 1, devices=(gpu,)), 1, None)
    expected = 1000 / estimates.step_seconds(case, 1000, capacity, CATALOG)
    assert published / 2 < expected < published * 2
