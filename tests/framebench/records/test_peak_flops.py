"""Peak FLOPS from records: which are read, and which applies to a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from framebench.files.json_files import Problem
from framebench.records import device_peaks
from framebench.runs import checks

from ..made_up_runs import run
from ..saved_records import peak_flops_record
from ..settings import changed, plan


def faster(**changes: Any) -> dict[str, Any]:
    """Return a record of 200 matmuls with 1000 rows in 4 s: 0.1 TFLOP/s."""
    made = peak_flops_record(**changes)
    made["ranks"][0]["matmuls"] = [{"size": 1000, "count": 200, "seconds": [4.0]}]
    made["metrics"]["peak"]["value"] = 0.1
    return made


def peaks_of(
    folder: Path, *records: dict[str, Any]
) -> tuple[device_peaks.PeakFlopsLookup, list[Problem]]:
    for number, content in enumerate(records):
        (folder / f"{number}.json").write_text(json.dumps(content))
    actual, problems = device_peaks.load(folder)
    return device_peaks.PeakFlopsLookup(actual), problems


HERE = {"hardware": "Example CPU", "cores_per_device": 2, "sequence_length": 128}


def test_the_fastest_block_of_all_sizes_is_the_peak(tmp_path: Path) -> None:
    actual, problems = peaks_of(tmp_path, peak_flops_record())
    peak = actual.for_run(run(**HERE))
    assert peak is not None
    assert peak.tflops == pytest.approx(0.05, rel=1e-12)
    assert peak.by == "pytorch 2.8.0 float32 1000"
    assert not problems


def test_the_peak_of_a_device_is_that_of_the_fastest_framework(tmp_path: Path) -> None:
    actual, _ = peaks_of(
        tmp_path, peak_flops_record(), faster(case={"framework": "jax"}), peak_flops_record()
    )
    peak = actual.for_run(run(framework="tensorflow", **HERE))
    assert peak is not None
    assert (peak.framework, peak.tflops) == ("jax", pytest.approx(0.1))


@pytest.mark.parametrize(
    "other",
    [
        {"hardware": "Another CPU"},
        {"hardware": ""},
        {"cores_per_device": 1},
        {"accelerator": "cuda", "cores_per_device": None},
        {"precision": "amp"},
        {"source": "DLPerf"},
    ],
)
def test_the_peak_of_another_device_or_precision_is_none(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    actual, _ = peaks_of(tmp_path, peak_flops_record())
    assert actual.for_run(run(**{**HERE, **other})) is None


def test_the_sustained_rate_is_the_peak_and_not_a_faster_burst(tmp_path: Path) -> None:
    peak = peak_flops_record(
        metrics={"peak": {"value": 0.04, "unit": "TFLOP/s", "better": "higher"}}
    )
    peak["ranks"][0]["sustained"] = {"size": 1000, "count": 40, "seconds": [2.0]}
    actual, problems = peaks_of(tmp_path, peak)
    peak = actual.for_run(run(**HERE))
    assert problems == []
    assert peak is not None
    assert peak.tflops == pytest.approx(0.04, rel=1e-12), "a burst of it was faster"
    assert peak.by == "pytorch 2.8.0 float32 1000 for 2.0 s"


def together(devices: int, tflops: float) -> dict[str, Any]:
    """Return a peak-FLOPS record with ``tflops`` on the last device, twice that on the others."""
    made = peak_flops_record(case={"devices_per_node": devices})
    made["metrics"]["peak"]["value"] = tflops
    (rank,) = made["ranks"]
    speeds = [*[2 * tflops] * (devices - 1), tflops]
    made["ranks"] = [
        {
            **rank,
            "rank": n,
            "sustained": {"size": 1000, "count": round(1000 * speed), "seconds": [2.0]},
        }
        for n, speed in enumerate(speeds)
    ]
    return made


@pytest.mark.parametrize(("devices", "expected"), [(1, 0.05), (2, 0.03), (3, 0.03), (4, 0.02)])
def test_several_devices_are_held_against_what_as_many_reach_at_once(
    tmp_path: Path, devices: int, expected: float
) -> None:
    actual, problems = peaks_of(tmp_path, peak_flops_record(), together(2, 0.03), together(4, 0.02))
    peak = actual.for_run(run(**HERE, devices_per_node=devices))
    assert problems == []
    assert peak is not None
    assert peak.tflops == pytest.approx(expected)
    assert ("at once" in peak.by) == (devices > 1)


def test_each_number_of_devices_of_a_suite_has_a_peak_benchmark(tmp_path: Path) -> None:
    suite = changed(framework=["jax"], devices_per_node=[1, 2])
    made = plan(tmp_path, {**suite, "include": [{"precision": ["amp"]}]}, results=str(tmp_path))
    named = checks.peak_benchmarks(made)
    asked = {(benchmark.precision, benchmark.devices) for benchmark in named.values()}
    assert asked == {("fp32", 1), ("fp32", 2)}, "a mixed precision has no peak of its own on CPUs"
    assert len(named) == 2


def test_a_refused_peak_benchmark_is_no_peak(tmp_path: Path) -> None:
    refused = peak_flops_record(status="unsupported", reason="no half precision here", ranks=[])
    actual, problems = peaks_of(tmp_path, refused)
    assert actual.for_run(run(**HERE)) is None
    assert not problems
