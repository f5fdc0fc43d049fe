"""Operations per second against peaks of devices and of frameworks, by hand-computed numbers."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest
from framebench.records import fields
from framebench.records.device_peaks import PeakFlops, PeakFlopsLookup
from framebench.tables.declared import efficiency
from framebench.tables.results import group
from framebench.tables.table import Inputs, frame_rows

from ..made_up_peaks import CPU, ROOFLINE_MODELS, peak_flops
from ..made_up_runs import repeats, run, table_of
from ..table_rows import only

MODELS = {
    "resnet50_v1.5": {
        "sequence_lengths": [],
        "forward_multiply_adds": {"per_sample": 4_000_000_000},
    },
    "bert_base": {
        "sequence_lengths": [1, 512],
        "forward_multiply_adds": {"per_token": 1000, "per_token_pair": 10},
    },
}
GPU = {"hardware": "NVIDIA H200, Example CPU", "accelerator": "cuda"}


def table(*runs: Any, peaks: tuple[PeakFlops, ...] = ()) -> pd.DataFrame:
    return table_of("efficiency", runs, peaks=PeakFlopsLookup(peaks), models=MODELS)


@pytest.mark.parametrize(
    ("mode", "devices", "achieved", "used"),
    [
        # 2 images/s x 2 x 4 GFLOP = 16 GFLOP/s of 64
        ("inference", 1, 0.016, 0.25),
        # three times that with the backward pass
        ("train", 1, 0.048, 0.75),
        # shared by two devices
        ("train", 2, 0.024, 0.375),
    ],
)
def test_utilisation_is_model_operations_over_the_measured_peak(
    mode: str, devices: int, achieved: float, used: float
) -> None:
    actual = only(
        table(run(2.0, mode=mode, devices_per_node=devices, **CPU), peaks=(peak_flops(0.064),))
    )
    assert actual["tflops_per_device"] == pytest.approx(achieved, rel=1e-12)
    assert actual["peak_tflops"] == 0.064
    assert actual["mfu"] == pytest.approx(used, rel=1e-12)
    assert actual["peak_by"] == "jax 1 float32 1024"
    assert actual["reason"] == ""
    assert math.isnan(actual["datasheet_tflops"])


def test_operations_of_a_sequence_depend_on_its_length() -> None:
    actual = only(table(run(1e6, model="bert_base", mode="inference", sequence_length=20, **CPU)))
    # 1000 x 20 + 10 x 20^2 = 24,000 multiply-adds, a million times per second
    assert actual["tflops_per_device"] == pytest.approx(0.048, rel=1e-12)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "another"}, "operations of this model"),
        ({"model": "bert_base"}, "or of this sequence length"),
        ({"precision": "amp"}, "no peak-FLOPS benchmark of such a device in amp"),
        ({"hardware": "Another CPU"}, "no peak-FLOPS benchmark of such a device in fp32"),
        ({"throughput": None, "reason": "too big", "status": "oom"}, "oom: too big"),
    ],
)
def test_without_a_peak_or_operations_there_is_no_utilisation(
    changes: dict[str, Any], reason: str
) -> None:
    actual = only(table(run(**{"throughput": 2.0, **CPU, **changes}), peaks=(peak_flops(0.064),)))
    assert math.isnan(actual["mfu"])
    assert reason in actual["reason"]


def test_the_datasheet_stands_next_to_the_measured_peak_and_is_not_used() -> None:
    measured = peak_flops(40.0, hardware=GPU["hardware"], accelerator="cuda", cores=None)
    actual = only(table(run(1000.0, **GPU), peaks=(measured,)))
    assert actual["datasheet_tflops"] == 67.0
    assert actual["mfu"] == pytest.approx(1000 * 24e9 / 40e12, rel=1e-12)


@pytest.mark.parametrize(
    ("name", "fp32", "amp"),
    [
        ("NVIDIA H200", 67, 989.5),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", None, None),
        ("NVIDIA A100-SXM4-40GB MIG 3g.20gb", None, None),
        ("NVIDIA L40S (ECC off)", 91.6, 362),
        ("NVIDIA A10G", None, 70),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 126, 503.8),
        ("NVIDIA H20", 44, 148),
        ("NVIDIA GeForce RTX 4090", 82.6, 165.2),
        ("NVIDIA GeForce RTX 4090 D", None, None),
        ("A100-PCIE-40GB", 19.5, 312),
        ("NVIDIA A10", 31.2, 125),
    ],
)
def test_a_device_is_found_by_its_whole_name(
    name: str, fp32: float | None, amp: float | None
) -> None:
    for precision, expected in (("fp32", fp32), ("amp", amp), ("amp_fp16", amp), ("bf16", amp)):
        made = run(precision=precision, **{**GPU, "hardware": f"{name}, Example CPU"})
        actual = only(table(made))["datasheet_tflops"]
        assert actual == expected or (expected is None and math.isnan(actual))


def test_energy_is_the_median_and_memory_the_most_of_the_repeats() -> None:
    figures = [(3.0, 10, 500), (1.0, 30, 400), (2.0, 20, 600), (None, None, None)]
    runs = [
        run(2.0, repeat=n, joules_per_sample=j, peak_device_memory=d, peak_host_memory=h, **CPU)
        for n, (j, d, h) in enumerate(figures, 1)
    ]
    actual = only(table(*runs))
    assert actual["energy_joules_per_sample"] == 2.0
    assert actual["peak_device_memory_bytes"] == 30
    assert actual["peak_host_memory_bytes"] == 600


@pytest.mark.parametrize(("tflops", "flags"), [(0.049, ["peak"]), (0.051, [])])
def test_a_model_as_fast_as_the_peak_flags_the_peak(tflops: float, flags: list[str]) -> None:
    # 2 images/s x 3 (forward and backward) x 2 x 4e9 multiply-adds are 0.048 TFLOP/s: 98 % and 94 %
    actual = only(table(run(2.0, **CPU), peaks=(peak_flops(tflops),)))
    assert actual["mfu"] == pytest.approx(0.048 / tflops)
    assert actual["flags"].split() == flags


@pytest.mark.parametrize(
    ("joules", "expected"),
    [
        ({"package-0": None}, ""),
        ({"package-0": 9.0, "package-1": 9.0, "dram-0": 1.0}, "package, dram"),
    ],
)
def test_energy_names_what_it_is_of(joules: Any, expected: str) -> None:
    assert fields.energy_sources({"watch": {"energy_joules": joules}}) == expected


def test_repeats_with_other_sources_of_energy_say_so() -> None:
    runs = [
        run(2.0, repeat=n, joules_per_sample=joules, energy_sources=sources, **CPU)
        for n, (joules, sources) in enumerate([(1.0, "gpu"), (3.0, "package"), (None, "")], 1)
    ]
    assert only(table(*runs))["energy_sources"] == "gpu or package"


def test_energy_of_several_nodes_is_that_of_all_or_none() -> None:
    both = [
        {"node": "n1", "watch": {"energy_joules": {"package-0": 30.0}}},
        {"node": "n2", "watch": {"energy_joules": {"package-0": 20.0}}},
    ]
    record = {"case": {"nodes": 2}, "nodes": both}
    assert fields.joules(record) == 50.0
    both[1]["watch"] = {"energy_joules": {}}
    assert fields.joules(record) is None, "half of it passed for all"


PEAKS = (
    peak_flops(0.08),
    peak_flops(0.02, framework="pytorch"),
    peak_flops(0.01, framework="pytorch"),
    peak_flops(0.041, framework="mxnet"),
    peak_flops(0.001, framework="pytorch", devices=2),
    peak_flops(0.07, devices=2),
    peak_flops(0.001, framework="mxnet", hardware="Other CPU"),
)


def test_a_figure_has_its_part_of_both_peaks() -> None:
    runs = group(repeats(1.99, 2.0, 2.01, 2.02, 2.03, 2.04, 2.05, **CPU), None)
    inputs = Inputs(runs, peaks=PeakFlopsLookup(PEAKS), models=ROOFLINE_MODELS)
    (row,) = frame_rows(inputs.frame_of(efficiency.EFFICIENCY))
    assert row["mfu"] == pytest.approx(2.02 * 6e9 / 0.08e12)
    assert row["of_own_peak"] == pytest.approx(2.02 * 6e9 / 0.02e12)
    assert row["own_peak_tflops"] == 0.02
    assert row["own_peak_share"] == pytest.approx(0.25)
