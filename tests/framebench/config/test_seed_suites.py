"""Suites after other benchmarks, and what a small machine leaves out of them."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from core.case import Case
from framebench.cases.fitting import Capacity, fit
from framebench.cases.matrix import cases
from framebench.config.suite import load_suite
from framebench.machine.local import Machine

from ...conftest import ROOT
from ...frameworks.cnns import TORCHVISION
from ..settings import CATALOG

ELECTRA, RESNET50 = "nvidia-tensorflow2-electra", "nvidia-mxnet-resnet50"
#: Sequences of an update in the two phases of pre-training, by sequence length.
SEQUENCES = {128: 67_584, 512: 27_648}


def cases_of(name: str) -> list[Case]:
    return [*cases(load_suite(name, CATALOG), CATALOG)]


def published(source: str, table: str) -> set[tuple[Any, ...]]:
    with (ROOT / "results/published" / source / "published.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["table"].startswith(table)]
    return {
        (
            *(row[key] for key in ("mode", "precision", "compiler")),
            *(int(row[key]) for key in ("devices_per_node", "batch_per_device")),
            int(length) if (length := row["variant"].partition("seq=")[2]) else None,
        )
        for row in rows
    }


def settings_of(cases: list[Case]) -> set[tuple[Any, ...]]:
    return {
        (
            *(case.mode, case.precision, case.compiler),
            *(case.devices_per_node, case.batch_per_device, case.sequence_length),
        )
        for case in cases
    }


@pytest.mark.parametrize(
    ("name", "model", "table"),
    [
        ("nvidia_electra", "electra_base", "pre-training throughput/DGX A100"),
        ("nvidia_electra", "electra_base_squad", "fine-tuning throughput/DGX A100"),
        ("nvidia_electra_dgx1", "electra_base", "pre-training throughput/DGX-1"),
        ("nvidia_electra_dgx1", "electra_base_squad", "fine-tuning throughput/DGX-1"),
        ("nvidia_electra_dgx2", "electra_base", "pre-training throughput/DGX-2"),
        ("nvidia_electra_dgx2", "electra_base_squad", "fine-tuning throughput/DGX-2"),
        ("nvidia_electra_latency", "electra_base_squad", "inference/DGX A100"),
        ("nvidia_electra_latency_t4", "electra_base_squad", "inference/T4"),
    ],
)
def test_electra_has_the_settings_of_the_published_figures(
    name: str, model: str, table: str
) -> None:
    every = [case for case in cases_of(name) if case.framework == "tensorflow"]
    assert {case.model for case in every} <= {"electra_base", "electra_base_squad"}
    actual = [case for case in every if case.model == model]
    assert settings_of(actual) == published(ELECTRA, table)
    for case in actual:
        updates = case.devices_per_node * int(case.batch_per_device) * case.accumulation
        if model == "electra_base":
            # NVIDIA's 40 x 1689 and 40 x 8 x 211 are near 67,584
            assert updates == pytest.approx(SEQUENCES[case.sequence_length or 0], rel=0.001)
        else:
            assert case.accumulation == 1


def test_fine_tuning_has_the_settings_of_the_published_times() -> None:
    with (ROOT / "results/published" / ELECTRA / "published.csv").open() as file:
        rows = [
            (row["precision"], int(row["devices_per_node"]), int(row["batch_per_device"]))
            for row in csv.DictReader(file)
            if row["table"].startswith("fine-tuning/DGX A100")
            and row["quantity"] == "time_to_train"
        ]
    actual = cases_of("nvidia_electra_squad")
    ours = [(case.precision, case.devices_per_node, int(case.batch_per_device)) for case in actual]
    assert {*rows} == {*ours}
    assert {case.framework for case in actual} >= {"tensorflow", "pytorch"}
    parameters = dict(actual[0].parameters)
    assert (parameters["epochs"], parameters["warmup"], parameters["schedule"]) == (
        2,
        0.05,
        "linear",
    )


@pytest.mark.parametrize(
    ("name", "machine", "full"),
    [
        ("nvidia_resnet50", "DGX A100", "tf32"),
        ("nvidia_resnet50_dgx1", "DGX-1", "fp32"),
        ("nvidia_resnet50_dgx2", "DGX-2", "fp32"),
        ("nvidia_resnet50_t4", "T4", "fp32"),
    ],
)
def test_resnet50_has_the_settings_of_the_published_figures(
    name: str, machine: str, full: str
) -> None:
    actual = settings_of([case for case in cases_of(name) if case.framework == "pytorch"])
    theirs = published(RESNET50, f"training/{machine}")
    # for inference, NVIDIA prints mixed precision with its speed-up over full precision
    speeds = published(RESNET50, f"inference/{machine}")
    theirs |= speeds | {(mode, full, *others) for mode, _, *others in speeds}
    assert actual == theirs


def test_superbench_has_all_models_of_its_own_and_of_torchvision() -> None:
    actual = cases_of("superbench_models")
    model_configs = CATALOG.models
    theirs = {name for name in model_configs if name.startswith("superbench_")}
    theirs |= {*TORCHVISION, "llama2_7b", "llama2_13b", "llama2_70b"}
    assert len(theirs) == 45
    transformers = {name for name in theirs if name.startswith(("superbench_b", "superbench_g"))}
    assert len(transformers) == 6
    for mode in ("train", "inference"):
        for precision in ("fp32", "tf32", "fp16", "fp8", "fp8_e4m3"):
            chosen = [case for case in actual if (case.mode, case.precision) == (mode, precision)]
            has = transformers if precision.startswith("fp8") else theirs
            assert {case.model for case in chosen} == has
            devices = {1, 8} if mode == "train" else {1}
            assert {case.devices_per_node for case in chosen} == devices
    assert {case.batch_per_device for case in actual} == {32}
    assert {case.sequence_length for case in actual} == {None, 512}
    steps = load_suite("superbench_models", CATALOG).steps
    assert (steps.warmup.at_least, steps.timed.at_least) == (64, 2048)


def test_a_small_machine_leaves_out_what_needs_more_devices() -> None:
    actual = cases_of("superbench_models")
    kept, left = fit(actual, Capacity("cpu", Machine(2, 0), 1, 2), CATALOG)
    assert {case.devices_per_node for case in kept} == {1}
    assert len(left) == sum(case.devices_per_node > 1 for case in actual)
    assert all("devices per node" in left_out.reason for left_out in left)


#: Bytes per parameter of weights, gradients and two moments in float32, and of weights alone.
TRAINED, WEIGHTS = 16, 4


def test_devices_hold_what_they_do_not_share_out() -> None:
    (one, *_) = cases_of("megatron_gpt")
    cases_and_bytes = {
        one._replace(devices_per_node=4): 4 * TRAINED,
        one._replace(devices_per_node=4, parallelism="fsdp"): TRAINED,
        one._replace(devices_per_node=4, parallelism="data2xtensor2"): 2 * TRAINED,
        one._replace(devices_per_node=2, nodes=2, parallelism="pipeline"): TRAINED / 2,
        one._replace(mode="inference"): WEIGHTS,
        one._replace(precision="amp"): TRAINED,
        one._replace(precision="fp16"): TRAINED / 2,
        one._replace(model="resnet50"): 2 * WEIGHTS,
        one._replace(mode="generate"): 0,
    }
    for case, each in cases_and_bytes.items():
        least = each * CATALOG.models[case.model]["trainable_parameters"]
        for there, is_kept in ((least, True), (least - 1, not least)):
            kept, _ = fit(
                [case], Capacity("cpu", Machine(16, 0, nodes=2), 8, 2, int(there)), CATALOG
            )
            assert bool(kept) == is_kept, (case, there)
