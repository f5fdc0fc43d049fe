"""``parallelism``: how devices share a training step, from the suite to the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from framebench.plan.plan import Plan
from framebench.plan.plan_text import describe
from framebench.runs import checks

from ..made_up_runs import build, run
from ..made_up_verifications import CASE, flag_of, run_in, verification_in
from ..settings import CATALOG, plan_of_axes
from ..table_rows import row


def plan_of(tmp_path: Path, **axes: Any) -> Plan:
    return plan_of_axes(tmp_path, model=["gpt2_small"], **axes)


# ---- the matrix ---------------------------------------------------------------------------------


def test_only_training_on_several_devices_is_sharded(tmp_path: Path) -> None:
    ways = {"devices_per_node": [1, 2], "parallelism": ["data", "fsdp", "tensor"]}
    plan = plan_of(tmp_path, mode=["train", "inference"], **ways)
    actual = {(c.mode, c.devices, c.parallelism, c.batch_total) for c in plan.folders}
    assert actual == {
        *(("train", 1, "data", 4), ("inference", 1, "data", 4), ("inference", 2, "data", 8)),
        *(("train", 2, "data", 8), ("train", 2, "fsdp", 8), ("train", 2, "tensor", 4)),
    }
    assert len(plan.folders) == len(actual)
    text = describe(plan)
    assert "; fsdp, tensor; total 8;" in text, text


def test_combined_parallelisms_need_the_product_of_their_devices(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, devices_per_node=[2, 4], parallelism=["fsdp2xtensor2"])
    ((case,), (left,)) = plan.folders, plan.left_out
    assert (case.devices, case.replicas, case.batch_total) == (4, 2, 8)
    assert left.reason == "fsdp2xtensor2 needs 4 devices, not 2"


def test_samples_of_a_pipeline_are_those_of_its_micro_batches(tmp_path: Path) -> None:
    ways = ["data", "pipeline", "data2xpipeline2"]
    devices = {"devices_per_node": [1, 4], "parallelism": ways}
    plan = plan_of(tmp_path, accumulation=[8], **devices)
    actual = {(c.devices, c.parallelism): (c.replicas, c.batch_total) for c in plan.folders}
    assert actual == {
        (1, "data"): (1, 4 * 8),
        (4, "data"): (4, 4 * 8 * 4),
        (4, "pipeline"): (1, 4 * 8),
        (4, "data2xpipeline2"): (2, 4 * 8 * 2),
    }


def test_only_devices_with_different_samples_divide_a_total_batch(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, batch_total=[8], devices_per_node=[2], parallelism=["fsdp", "tensor"])
    assert {c.parallelism: c.batch_per_device for c in plan.folders} == {"fsdp": 4, "tensor": 8}


# ---- tables -------------------------------------------------------------------------------------


def test_parallelisms_over_samples_scale_weakly_and_the_others_strongly() -> None:
    def on(devices: int, batch: int, parallelism: str, throughput: float) -> Any:
        size = {"devices_per_node": devices, "batch_per_device": batch}
        return run(throughput, parallelism=parallelism, **size)

    runs = [on(1, 8, "data", 100.0), on(2, 8, "fsdp", 150.0), on(2, 8, "tensor", 120.0)]
    runs += [on(4, 8, "pipeline", 310.0), on(4, 8, "data2xpipeline2", 330.0)]
    tables = build(runs)
    weak, strong = tables["weak_scaling"], tables["strong_scaling"]
    assert row(weak, devices=2)["parallelism"] == "fsdp"
    assert row(weak, devices=2)["speedup"] == 1.5
    assert row(strong, devices=2)["parallelism"] == "tensor"
    assert row(strong, devices=2)["speedup"] == 1.2
    assert row(strong, devices=2)["total_batch"] == 8
    assert row(strong, devices=4)["parallelism"] == "pipeline"
    assert row(strong, devices=4)["speedup"] == 3.1
    assert set(strong["total_batch"]) == {8}  # two replicas have no baseline here
    assert "data2xpipeline2" not in {*weak["parallelism"], *strong["parallelism"]}


# ---- verifications ------------------------------------------------------------------------------


def test_a_parallelism_needs_its_own_verification(tmp_path: Path) -> None:
    training = {**CASE, "mode": "train", "model": "resnet50_v1.5", "sequence_length": None}
    two = {**training, "devices_per_node": 2}
    verification_in(tmp_path, training)
    verification_in(tmp_path, two)
    data, fsdp = run_in(tmp_path, two), run_in(tmp_path, {**two, "parallelism": "fsdp"})
    assert flag_of(tmp_path, data) is None
    why = "it was not compared on several devices by fsdp"
    assert flag_of(tmp_path, fsdp) == ("unverified", why)
    verification_in(tmp_path, {**two, "parallelism": "fsdp"})
    assert flag_of(tmp_path, fsdp) is None


def test_verification_compares_the_smallest_groups(tmp_path: Path) -> None:
    ways = ["data", "tensor", "fsdp4xtensor2", "pipeline"]
    plan = plan_of(tmp_path, devices_per_node=[8], parallelism=ways)
    named = checks.verification_names(plan, CATALOG, checks.full_size(plan, CATALOG))
    by = [(2, "data"), (2, "tensor"), (4, "fsdp2xtensor2"), (2, "pipeline")]
    for dropout in (False, True):
        several = [
            (verification.case.devices, verification.case.parallelism)
            for verification in named.values()
            if verification.case.devices > 1 and verification.dropout == dropout
        ]
        assert several == by
    tensor = next(
        name for name, verification in named.items() if verification.case.parallelism == "tensor"
    )
    assert "-2d-tensor-" in tensor
    arguments = checks.verification_arguments(plan, named[tensor], "/reference")
    assert arguments[arguments.index("--parallelism") + 1] == "tensor"


def test_replicas_with_more_batches_have_a_reference_that_averages_over_all(tmp_path: Path) -> None:
    ways = ["data", "data4xfsdp2", "data4xtensor2"]
    plan = plan_of(tmp_path, devices_per_node=[8], parallelism=ways)
    actual = {
        verification.case.parallelism: verification
        for verification in checks.full_size(plan, CATALOG)
        if not verification.dropout
    }
    named = {parallelism: verification.reference for parallelism, verification in actual.items()}
    assert named["data2xfsdp2"] == "gpt2_small-s128-4parts"
    assert named["data"] == named["data2xtensor2"] == "gpt2_small-s128"
    arguments = checks.reference_arguments(plan, actual["data2xfsdp2"])
    assert arguments[arguments.index("--parts") + 1] == "4"
    assert "--parts" not in checks.reference_arguments(plan, actual["data"])
