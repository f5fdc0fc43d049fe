"""Suites that are somebody else's benchmark have its matrix, and a small machine leaves out what it
has no devices for."""

from __future__ import annotations

import csv
import math
from typing import Any

import pytest
from framebench.cases.matrix import Capacity, Case, cases, fit
from framebench.config.suite import load_suite
from harness.measuring import synthetic

from ..conftest import ROOT
from ..frameworks.cnns import TORCHVISION
from .test_config import CATALOG

SUITES = [
    "superbench_models", "nvidia_electra", "nvidia_electra_latency", "nvidia_resnet50",
    "megatron_gpt", "nvidia_electra_squad",
]  # fmt: skip
ELECTRA, RESNET50 = "nvidia-tensorflow2-electra", "nvidia-mxnet-resnet50"
#: Of an update in the two phases of pre-training, by the length of a sequence.
SEQUENCES = {128: 67_584, 512: 27_648}


def cases_of(name: str) -> list[Case]:
    return cases(load_suite(name, CATALOG), CATALOG)


def published(source: str, table: str) -> set[tuple[Any, ...]]:
    """The settings of a table's figures."""
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


def settings_of(found: list[Case]) -> set[tuple[Any, ...]]:
    return {
        (
            *(case.mode, case.precision, case.compiler),
            *(case.devices_per_node, case.batch_per_device, case.sequence_length),
        )
        for case in found
    }


@pytest.mark.parametrize(
    ("name", "model", "table"),
    [
        ("nvidia_electra", "electra_base", "pre-training throughput/DGX A100"),
        ("nvidia_electra", "electra_base_squad", "fine-tuning throughput/DGX A100"),
        ("nvidia_electra_latency", "electra_base_squad", "inference/DGX A100"),
    ],
)
def test_electra_has_the_settings_of_the_published_figures(
    name: str, model: str, table: str
) -> None:
    every = [case for case in cases_of(name) if case.framework == "tensorflow"]
    assert {case.model for case in every} <= {"electra_base", "electra_base_squad"}
    found = [case for case in every if case.model == model]
    assert settings_of(found) == published(ELECTRA, table)
    for case in found:
        updates = case.devices_per_node * int(case.batch_per_device) * case.accumulation
        if model == "electra_base":
            assert updates == SEQUENCES[case.sequence_length or 0]
        else:
            assert case.accumulation == 1


def test_the_batch_of_an_update_has_room_on_a_device() -> None:
    """Noise for each word of the vocabulary would be 330 GB."""
    for case in cases_of("nvidia_electra"):
        facts = CATALOG.models[case.model]
        samples = int(case.batch_per_device) * case.accumulation
        shapes = [
            synthetic.shape_of(one["shape"], samples, case.sequence_length)
            for one in facts["inputs"]
        ]
        assert 8 * sum(map(math.prod, shapes)) < 10**9, case


def test_fine_tuning_has_the_settings_of_the_published_times() -> None:
    with (ROOT / "results/published" / ELECTRA / "published.csv").open() as file:
        rows = [
            (row["precision"], int(row["devices_per_node"]), int(row["batch_per_device"]))
            for row in csv.DictReader(file)
            if row["table"].startswith("fine-tuning/DGX A100")
            and row["quantity"] == "time_to_train"
        ]
    found = cases_of("nvidia_electra_squad")
    ours = [(case.precision, case.devices_per_node, int(case.batch_per_device)) for case in found]
    assert {*rows} == {*ours}
    assert {case.framework for case in found} >= {"tensorflow", "pytorch"}
    given = dict(found[0].parameters)
    assert (given["epochs"], given["warmup"], given["schedule"]) == (2, 0.05, "linear")


def test_resnet50_has_the_settings_of_the_published_figures() -> None:
    found = [case for case in cases_of("nvidia_resnet50") if case.framework == "pytorch"]
    theirs = published(RESNET50, "training/DGX A100") | published(RESNET50, "inference/DGX A100")
    speeds = {setting for setting in theirs if setting[1] == "amp"}
    assert {setting for setting in settings_of(found) if setting[1] == "amp"} == speeds
    # inference is printed in mixed precision, with its speed-up over TF32
    assert {(*one[:1], "tf32", *one[2:]) for one in speeds} == settings_of(found) - speeds


def test_superbench_has_all_models_of_its_own_and_of_torchvision() -> None:
    found = cases_of("superbench_models")
    facts = CATALOG.models
    theirs = {name for name in facts if name.startswith("superbench_")}
    theirs |= {*TORCHVISION}
    assert len(theirs) == 42
    for mode in ("train", "inference"):
        for precision in ("fp32", "tf32", "fp16"):
            chosen = [one for one in found if (one.mode, one.precision) == (mode, precision)]
            assert {case.model for case in chosen} == theirs
    assert {case.batch_per_device for case in found} == {32}
    assert {case.sequence_length for case in found} == {None, 512}
    steps = load_suite("superbench_models", CATALOG).steps
    assert (steps.warmup.at_least, steps.timed) == (64, 2048)


def test_megatron_has_as_many_sequences_an_update_on_any_devices() -> None:
    found = cases_of("megatron_gpt")
    assert {case.precision for case in found} == {"fp32", "fp16", "bf16"}
    totals = {c.devices_per_node * int(c.batch_per_device) * c.accumulation for c in found}
    assert (totals, {case.sequence_length for case in found}) == ({2048}, {2048})


@pytest.mark.parametrize("name", SUITES)
def test_a_small_machine_leaves_out_what_needs_more_devices(name: str) -> None:
    found = cases_of(name)
    kept, left = fit(found, Capacity("cpu", 1, 1, 2))
    assert {case.devices_per_node for case in kept} == {1}
    assert len(left) == sum(case.devices_per_node > 1 for case in found)
    assert all("devices per node" in one.reason for one in left)
