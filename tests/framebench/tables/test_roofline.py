"""Cases under measured roofs, by hand-computed numbers of docs/micro-benchmarks.md."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from framebench.records.device_peaks import PeakFlops, PeakFlopsLookup
from framebench.records.run import MetricValue, Run
from framebench.report import html_report
from framebench.report.plots import Look
from framebench.tables.declared.efficiency import ROOFLINE, traffic_of_step
from framebench.tables.table import Inputs

from ..made_up_peaks import CPU, ROOFLINE_MODELS, device_benchmark, memory_bandwidth, peak_flops
from ..made_up_runs import run, table_of
from ..table_rows import only

GPU: dict[str, Any] = {"hardware": "Example GPU, Example CPU", "accelerator": "cuda"}


def matmul(tflops: float, devices: int = 1, place: dict[str, Any] = CPU, **other: Any) -> Run:
    metric = MetricValue("highest_rate", tflops, "TFLOP/s")
    case = {"framework": "mxnet", "precision": "fp32", "devices_per_node": devices, **other}
    return device_benchmark("matmul", metric, place, **case)


def table(
    *runs: Run,
    peaks: tuple[PeakFlops, ...] = (),
    models: dict[str, dict[str, Any]] = ROOFLINE_MODELS,
) -> pd.DataFrame:
    return table_of("roofline", runs, peaks=PeakFlopsLookup(peaks), models=models)


# ---- bytes and intensity ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "moved"),
    [
        # SGD with momentum: parameters and momentum, gradients, 4 bytes each, read and written
        ({}, 2 * (4 * 2 + 4) * 1e6),
        # gradients may have two bytes
        ({"precision": "amp"}, 2 * (4 * 2 + 2) * 1e6),
        ({"precision": "bf16"}, 2 * (2 * 2 + 2) * 1e6),
        ({"mode": "inference"}, 4e6),
        ({"mode": "inference", "precision": "amp"}, 2e6),
        # AdamW: two moments; gradients of 520 x 100 embedding parameters need not be written
        ({"model": "bert_base"}, 2 * (4 * 3 * 1e6 + 4 * (1e6 - 52_000))),
        ({"model": "bert_base", "mode": "inference"}, 4 * (1e6 - 52_000)),
    ],
)
def test_bytes_are_those_that_a_step_cannot_do_without(
    changes: dict[str, Any], moved: float
) -> None:
    assert traffic_of_step(run(**changes), ROOFLINE_MODELS).moved == moved


@pytest.mark.parametrize(
    ("changes", "models", "reason"),
    [
        ({"model": "another"}, {}, "the parameters of this model"),
        ({"parallelism": "fsdp", "devices_per_node": 2}, {}, "with fsdp devices share"),
        ({}, {"hyperparameters": {"optimizer": "lion"}}, "that the optimizer keeps"),
    ],
)
def test_bytes_that_are_not_known_have_a_reason(
    changes: dict[str, Any], models: dict[str, Any], reason: str
) -> None:
    model_config = {"resnet50_v1.5": {**ROOFLINE_MODELS["resnet50_v1.5"], **models}}
    actual = traffic_of_step(run(**changes), model_config)
    assert actual.moved is None
    assert reason in actual.reason


# ---- the table ----------------------------------------------------------------------------------


def test_a_case_is_held_against_the_lower_roof() -> None:
    """A training step of one image: 6 GFLOP, 24 MB: 250 FLOP/byte."""
    one = run(10.0, batch_per_device=1, **CPU)
    actual = only(table(one, memory_bandwidth(0.4), peaks=(peak_flops(0.2),)))
    assert actual["intensity"] == pytest.approx(250)
    assert actual["tflops_per_device"] == pytest.approx(0.06)
    assert actual["ridge"] == pytest.approx(500)
    assert (actual["lower_roof"], actual["bound_tflops"]) == ("memory", pytest.approx(0.1))
    assert actual["reached"] == pytest.approx(0.6)
    assert (actual["compute_roof_by"], actual["memory_roof_by"]) == (
        "jax 1 float32 1024",
        "memory triad",
    )
    assert actual["reason"] == ""
    more = only(
        table(run(10.0, batch_per_device=4, **CPU), memory_bandwidth(0.4), peaks=(peak_flops(0.2),))
    )
    assert more["intensity"] == pytest.approx(1000), "four images with the same parameters"
    assert (more["lower_roof"], more["reached"]) == ("compute", pytest.approx(0.3))
    twice = run(10.0, batch_per_device=1, accumulation=2, **CPU)
    assert only(table(twice, memory_bandwidth(0.4)))["intensity"] == pytest.approx(500)


def test_the_compute_roof_is_the_highest_rate_of_peak_and_matmul_benchmarks() -> None:
    one = run(10.0, **CPU)
    for tflops, by in ((0.3, "mxnet 2.8.0 matmul highest_rate"), (0.1, "jax 1 float32 1024")):
        made = replace(matmul(tflops), case=matmul(tflops).case._replace(framework_version="2.8.0"))
        actual = only(table(one, memory_bandwidth(9.0), made, peaks=(peak_flops(0.2),)))
        assert (actual["compute_roof_tflops"], actual["compute_roof_by"]) == (max(tflops, 0.2), by)
    measured = device_benchmark(
        "peak_flops", MetricValue("peak", 0.5, "TFLOP/s"), CPU, framework="paddle",
        framework_version="3", precision="fp32",
    )  # fmt: skip
    assert only(table(one, memory_bandwidth(9.0), measured))["compute_roof_by"] == (
        "paddle 3 peak_flops peak"
    )


def test_several_devices_are_held_against_what_as_many_reach_together() -> None:
    """One device alone reaches 10 GB/s; two reach 6 GB/s each."""
    two = run(20.0, devices_per_node=2, **CPU)
    alone = (memory_bandwidth(10.0), matmul(0.2))
    actual = only(table(two, *alone, peaks=(peak_flops(0.2),)))
    assert pd.isna(actual["reached"])
    assert pd.isna(actual["compute_roof_tflops"])
    assert pd.isna(actual["memory_roof_gbytes_per_second"])
    assert "no memory bandwidth was measured on as many such devices" in actual["reason"]
    actual = only(table(two, *alone, memory_bandwidth(12.0, 2), matmul(0.15, 2)))
    assert actual["memory_roof_gbytes_per_second"] == 6.0
    assert actual["memory_roof_by"] == "memory triad on 2 devices at once"
    assert actual["compute_roof_tflops"] == 0.15
    assert actual["tflops_per_device"] == pytest.approx(0.06), "half of what both compute"


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"place": {**CPU, "hardware": "Another CPU"}},
        {"place": {**CPU, "cores_per_device": 2}},
        {"nodes": 2},
    ],
)
def test_a_roof_of_another_device_is_none(elsewhere: dict[str, Any]) -> None:
    one = run(10.0, **CPU)
    actual = only(
        table(
            one,
            memory_bandwidth(10.0, **elsewhere),
            memory_bandwidth(1.0, 4),
            peaks=(peak_flops(0.2),),
        )
    )
    assert "no memory bandwidth was measured" in actual["reason"]
    assert pd.isna(actual["reached"])
    actual = only(table(one, memory_bandwidth(10.0), matmul(0.1, **elsewhere)))
    assert "no peak in fp32 was measured" in actual["reason"]


def test_a_gpu_has_the_memory_of_its_own_and_not_the_host_s() -> None:
    one = run(1000.0, **GPU)
    add = MetricValue("add", 3000.0, "GB/s")
    large = device_benchmark(
        "elementwise", add, GPU, framework="pytorch", parameters={"elements": 2**26}
    )
    small = device_benchmark("elementwise", add._replace(value=9000.0), GPU, framework="pytorch",
                             parameters={"elements": 2**22})  # fmt: skip
    host = memory_bandwidth(100.0, place=GPU)
    actual = only(table(one, host, small, large))
    assert actual["memory_roof_gbytes_per_second"] == 3000.0, "small arrays stay in a cache"
    assert not len(table(one, host, small)), "there is no bandwidth of such a memory"


@pytest.mark.parametrize(("bandwidth", "flagged"), [(0.4, False), (0.2, True)])
def test_a_memory_that_is_no_bound_is_flagged(bandwidth: float, flagged: bool) -> None:
    """A case at 0.06 TFLOP/s cannot be bound by a memory roof of 0.05 TFLOP/s."""
    one = run(10.0, batch_per_device=1, **CPU)
    actual = only(table(one, memory_bandwidth(bandwidth), peaks=(peak_flops(0.2),)))
    assert ("roof" in actual["flags"].split()) is flagged
    assert "peak" not in actual["flags"].split()


# ---- the plot -----------------------------------------------------------------------------------


def drawn(*runs: Run, peaks: tuple[PeakFlops, ...] = ()) -> list[Any]:
    made = table(*runs, peaks=peaks)
    look = Look(["pytorch", "jax"])
    return [*html_report.draw_table(ROOFLINE, made, Inputs({}), look)]


def test_each_precision_on_each_number_of_devices_has_roofs_and_a_panel_of_its_own() -> None:
    runs = [
        run(10.0, **CPU),
        run(12.0, framework="jax", **CPU),
        run(30.0, mode="inference", **CPU),
        run(18.0, devices_per_node=2, **CPU),
        run(20.0, precision="amp", **CPU),
    ]
    roofs = (
        memory_bandwidth(10.0),
        memory_bandwidth(12.0, 2),
        matmul(0.2),
        matmul(0.15, 2),
        matmul(0.4, precision="amp"),
    )
    plots = drawn(*runs, *roofs)
    assert sorted(plot.title for plot in plots) == [
        "Roofline: amp, 1n1g, 1 core", "Roofline: fp32, 1n1g, 1 core",
        "Roofline: fp32, 1n2g, 1 core",
    ]  # fmt: skip
    first = next(plot for plot in plots if "fp32, 1n1g" in plot.title)
    assert first.axes == {"precision": "fp32", "devices": "1n1g"}
    assert "resnet50_v1.5, inference, batch 32" in first.svg
    assert "10 GB/s, 0.2 TFLOP/s" in first.svg
    assert "Nothing is left out (cases: 3)." in first.caption
