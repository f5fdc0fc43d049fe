"""Sharding of a step: validation, refusals before the start, and checks of a run."""

from __future__ import annotations

import pytest
from harness.adapter import Case, Mismatch
from harness.command_line import parse
from harness.kind import Workload
from harness.measuring import checks

from ...conftest import ROOT

CASE = Case("pytorch", "gpt2_small", "train", 1, 2, 4, "fp32", "none", 16)


#: JAX's refusal of pipeline parallelism.
JAX_HAS_NO_STAGES = (
    "jax has no parallelism pipeline "
    "(it has: data, fsdp, tensor, fsdpxtensor, dataxfsdp, dataxtensor, dataxfsdpxtensor)"
)


@pytest.mark.parametrize(
    ("framework", "model", "devices", "parallelism", "reason"),
    [
        ("pytorch", "gpt2_small", 2, "tensor", None),
        ("pytorch", "gpt2_small", 1, "tensor", "tensor needs several devices"),
        ("pytorch", "resnet50_v1.5", 2, "fsdp", "resnet50_v1.5 is not a transformer"),
        ("mxnet", "gpt2_small", 2, "fsdp", "mxnet has no parallelism fsdp (it has: data)"),
        ("jax", "gpt2_small", 2, "fsdp", None),
        ("jax", "gpt2_small", 2, "pipeline", JAX_HAS_NO_STAGES),
        ("pytorch", "gpt2_small", 16, "pipeline2xdata2xfsdp2xtensor2", "pytorch has no parallelis"),
    ],
)
def test_what_cannot_be_is_unsupported_before_anything_starts(
    framework: str, model: str, devices: int, parallelism: str, reason: str | None
) -> None:
    length = [] if model.startswith("resnet") else ["--sequence-length", "16"]
    words = ["--kind", "train", "--framework", f"{ROOT}/scripts/frameworks/{framework}"]
    words += ["--model", f"{ROOT}/scripts/models/{model}.json", "--accelerator", "cpu"]
    words += ["--devices-per-node", str(devices), "--parallelism", parallelism, *length]
    actual = parse([*words, "--batch-per-device", "4"]).unsupported
    assert (actual or "").startswith(reason or "")
    assert (actual is None) == (reason is None)


FSDP = {"all_gather": 5, "reduce_scatter": 3, "all_reduce": 1}


@pytest.mark.parametrize(
    ("parallelism", "held", "collectives", "reason"),
    [
        ("fsdp", [50, 50], FSDP, None),
        ("fsdp", [100, 100], FSDP, "fsdp, but rank 0 holds all 100 parameters"),
        ("fsdp", [50, 40], FSDP, "all ranks together hold 90 of 100 parameters"),
        ("fsdp", [50, 50], {"all_reduce": 9}, "rank 0 has no gathers of parameters"),
        ("tensor", [80, 80], {"reduce_scatter": 4}, None),
        ("pipeline", [50, 50], {"send": 2}, None),
        ("pipeline", [50, 50], {"all_reduce": 2}, "rank 0 has no messages between stages"),
    ],
)
def test_what_was_not_shared_is_no_measurement(
    parallelism: str, held: list[int], collectives: dict[str, int], reason: str | None
) -> None:
    ranks = [
        {
            "rank": n,
            "held_parameters": count,
            "trainable_parameters": 100,
            "collectives": collectives,
        }
        for n, count in enumerate(held)
    ]
    workload = Workload(CASE._replace(parallelism=parallelism), {}, {}, 1, None, 1)
    if reason is None:
        checks.check_sharding(workload.case, ranks)
        return
    with pytest.raises(Mismatch, match=reason):
        checks.check_sharding(workload.case, ranks)


def test_four_ranks_of_which_one_holds_too_much() -> None:
    four = CASE._replace(parallelism="fsdp", devices_per_node=4)
    checks.check_held(four, 1, 45, 100)
    with pytest.raises(
        Mismatch, match="holds 60 of 100 parameters, more than twice its share of 4"
    ):
        checks.check_held(four, 1, 60, 100)
