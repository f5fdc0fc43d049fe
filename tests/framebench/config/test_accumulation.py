"""``accumulation``: micro-steps of a training step, from the suite to the tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from core import axes
from core.case import Case
from framebench.plan.plan_text import describe
from framebench.records.run import Run
from framebench.runs import checks

from ..made_up_runs import build, run
from ..made_up_verifications import CASE, flag_of, run_in, verification_in
from ..settings import CATALOG, plan_of_axes
from ..table_rows import row

# ---- the matrix ---------------------------------------------------------------------------------


def test_only_training_accumulates(tmp_path: Path) -> None:
    plan = plan_of_axes(tmp_path, mode=["train", "inference"], accumulation=[1, 4])
    actual = [(case.mode, case.accumulation, case.batch_total) for case in plan.folders]
    assert actual == [("train", 1, 4), ("train", 4, 16), ("inference", 1, 4)]
    text = describe(plan)
    assert "batch 4; accumulation 4; total 16" in text
    assert "accumulation 1" not in text
    alone = plan_of_axes(tmp_path, mode=["train", "inference"])
    assert [*alone.folders.items()] == [
        item for item in plan.folders.items() if item[0].accumulation == 1
    ]


def test_a_total_batch_is_that_of_all_micro_steps(tmp_path: Path) -> None:
    plan = plan_of_axes(tmp_path, batch_total=[12], devices_per_node=[1, 2], accumulation=[1, 3, 4])
    actual = [(c.devices, c.accumulation, c.batch_per_device) for c in plan.folders]
    assert actual == [(1, 1, 12), (1, 3, 4), (1, 4, 3), (2, 1, 6), (2, 3, 2)]
    assert {case.batch_total for case in plan.folders} == {12}
    (left,) = plan.left_out
    assert left.reason == "a total batch of 12 is not divisible by 2 devices x 4 micro-steps"


# ---- records ------------------------------------------------------------------------------------


def test_a_path_names_several_micro_steps_and_leaves_out_a_single_one() -> None:
    case = Case("pytorch", "bert_base", "train", 1, 2, 8, "fp32", "none", 128)
    others = [case, case._replace(variant="older"), case._replace(accumulation=4)]
    single, variant, four = (other.folder({"seed": 1}) for other in others)
    assert single == "pytorch/bert_base/train-fp32-none-1n2g-b8-s128-2ac72712"
    assert variant == "pytorch/bert_base/train-fp32-none-1n2g-b8-s128-older-89aaf7c2"
    assert four.startswith("pytorch/bert_base/train-fp32-none-1n2g-b8-a4-s128-")
    assert four[-8:] != single[-8:]


def test_inference_has_no_axes_of_training() -> None:
    case = Case("pytorch", "bert_base", "inference", 1, 2, 8, "fp32", "none", 128)
    trained = case._replace(mode="train", accumulation=4, parallelism="fsdp")
    assert trained.inference == case


def test_a_zero_that_is_not_the_default_is_kept() -> None:
    case = Case("pytorch", "bert_base", "train", 1, 2, 8, "fp32", "none", 128, accumulation=0)
    assert case.arguments()["accumulation"] == 0
    assert Case.from_record(case.arguments(), "train") == case


# ---- tables -------------------------------------------------------------------------------------


def test_scaling_is_relative_to_one_device_with_the_same_micro_steps() -> None:
    def on(devices: int, batch: int, count: int, throughput: float) -> Run:
        size = {"devices_per_node": devices, "batch_per_device": batch, "accumulation": count}
        return run(throughput, **size)

    runs = [on(1, 8, 1, 100.0), on(1, 8, 4, 80.0), on(2, 8, 4, 120.0), on(2, 4, 4, 100.0)]
    tables = build(runs)
    weak, strong = tables["weak_scaling"], tables["strong_scaling"]
    assert row(weak, devices=2, batch_per_device=8)["speedup"] == 1.5
    assert row(weak, devices=2, batch_per_device=4)["reason"] == "no 1n1g run"
    actual = [(r.devices, r.batch_per_device, r.total_batch) for r in strong.itertuples()]
    assert actual == [(1, 8, 32), (2, 4, 32)]
    assert row(strong, devices=2)["speedup"] == 1.25


# ---- verifications ------------------------------------------------------------------------------


def test_accumulation_needs_a_verification_with_micro_steps(tmp_path: Path) -> None:
    training = {**CASE, "mode": "train", "model": "resnet50_v1.5", "sequence_length": None}
    verification_in(tmp_path, training)
    one, four = (run_in(tmp_path, {**training, "accumulation": n}) for n in (1, 4))
    assert flag_of(tmp_path, one) is None
    assert flag_of(tmp_path, four) == ("unverified", "it was not compared with accumulation")
    verification_in(tmp_path, {**training, "accumulation": 2}, error=0.1)
    off = "outputs differ from the reference by 0.1 (allowed 0.0001)"
    assert flag_of(tmp_path, four) == ("incorrect", off)
    assert flag_of(tmp_path, one) is None, "a verification with micro-steps counts for single steps"
    verification_in(tmp_path, {**training, "accumulation": 2}, started="2031-01-01")
    assert flag_of(tmp_path, four) is None


def test_each_of_two_axes_needs_its_verification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accumulation, parallelism, source = axes.OPTIONAL
    host = {"input": axes.SYNTHETIC_HOST}
    own = replace(source, verified_at=axes.SYNTHETIC_HOST)
    monkeypatch.setattr(axes, "OPTIONAL", (accumulation, parallelism, own))
    training = {**CASE, "mode": "train", "model": "resnet50_v1.5", "sequence_length": None}
    both = run_in(tmp_path, {**training, **host, "accumulation": 4})
    verification_in(tmp_path, {**training, "accumulation": 2})
    verification_in(tmp_path, {**training, **host})
    flag = flag_of(tmp_path, both)
    assert flag is not None
    assert flag[0] == "unverified"
    verification_in(tmp_path, {**training, **host, "accumulation": 2})
    assert flag_of(tmp_path, both) is None


def test_verification_compares_two_micro_steps(tmp_path: Path) -> None:
    plan = plan_of_axes(tmp_path, model=["resnet50_v1.5"], accumulation=[1, 4, 8])
    named = checks.verification_names(plan, CATALOG, checks.full_size(plan, CATALOG))
    assert [verification.case.accumulation for verification in named.values()] == [1, 2]
    name, other = named
    assert "-a2-" in other
    assert "-a" not in name.rpartition("/")[2].rpartition("-")[0], "before its digest"
    arguments = checks.verification_arguments(plan, named[other], "/reference")
    assert arguments[arguments.index("--accumulation") + 1] == "2"
    assert "--accumulation" not in checks.verification_arguments(plan, named[name], "/reference")
