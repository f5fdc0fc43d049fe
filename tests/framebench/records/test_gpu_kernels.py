"""Why a framework multiplies slowly on a GPU: kernels of its build, from the record of a peak."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from framebench.records import device_peaks, gpu_kernels
from framebench.records.device_peaks import PeakFlops, PeakFlopsLookup
from framebench.tables import frames, grouping
from framebench.tables.declared.efficiency import slow_libraries
from framebench.tables.table import Inputs
from harness.machine import hardware

from ... import fake_gpus
from ..made_up_runs import repeats
from ..saved_records import peak_flops_record

H100, V100 = "9.0", "7.0"
OTHER_BUILD = "an image or a Python of your own"


def peak_on(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capability: str,
    framework: str,
    prefix: str,
    version: str,
    **rank: Any,
) -> PeakFlops:
    """Return the peak from a record that was made on a machine with a fake GPU."""
    listed = fake_gpus.gpus(1, "Example GPU", 81559, "580.95.05", capability)
    monkeypatch.setenv("PATH", fake_gpus.install(folder / "bin", listed), prepend=":")
    environment = {
        "prefix": prefix,
        "packages": {"nvidia-cublas-cu12": "12.5.3.2", "nvidia-cudnn-cu12": "9"},
        "hardware": hardware.hardware([0]),
    }
    made = peak_flops_record(
        case={"framework": framework},
        settings={"accelerator": "cuda", "cores_per_device": None},
        framework_version=version,
        environment=environment,
    )
    made["ranks"][0].update(rank)
    (folder / "peaks").mkdir()
    (folder / "peaks" / "peak.json").write_text(json.dumps(made))
    (actual,), problems = device_peaks.load(folder / "peaks")
    assert not problems
    return actual


@pytest.mark.parametrize(
    ("capability", "framework", "environment", "version", "kernels", "helps"),
    [
        (H100, "pytorch", "pytorch-cuda", "2.15.0+cu132", "machine code for 9.0", ""),
        ("8.9", "pytorch", "pytorch-cuda", "2.15.0", "machine code for 8.6", ""),
        (H100, "tensorflow", "tensorflow-cuda", "2.21.0", "no machine code", OTHER_BUILD),
        (H100, "oneflow", "oneflow-cuda", "0.9.0", "none for compute", OTHER_BUILD),
        (V100, "pytorch", "pytorch-cuda", "2.15.0", "none for compute", "pytorch-cuda12"),
    ],
)
def test_a_peak_on_a_gpu_tells_the_kernels_of_its_build(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capability: str,
    framework: str,
    environment: str,
    version: str,
    kernels: str,
    helps: str,
) -> None:
    where = f"/venvs/{environment}-0123abcd"
    peak = peak_on(tmp_path, monkeypatch, capability, framework, where, version)
    assert peak.library.startswith(f"cuBLAS 12.5.3.2; own kernels: {kernels}")
    assert ("CUDA's JIT" in peak.library) == (kernels == "no machine code")
    assert peak.remedy.endswith(helps)
    assert bool(peak.remedy) == bool(helps)


@pytest.mark.parametrize(
    ("environment", "version"),
    [("tensorflow-cuda-0123abcd", "2.20.0"), ("own", "2.21.0"), ("paddle-cuda-0123abcd", "3.3.1")],
)
def test_only_the_framework_tells_the_kernels_of_an_unknown_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: str, version: str
) -> None:
    framework = environment.partition("-")[0]
    settings = {"kernels": "PTX"} if framework == "own" else {}
    peak = peak_on(
        tmp_path, monkeypatch, H100, framework, f"/venvs/{environment}", version, settings=settings
    )
    assert peak.library == "cuBLAS 12.5.3.2" + ("; own kernels: PTX" if settings else "")
    assert not peak.remedy


def test_gpus_that_a_record_only_names_tell_no_kernels() -> None:
    environment = {"packages": {}, "hardware": {"gpus": ["NVIDIA H100"]}}
    environment |= {"prefix": "/venvs/pytorch-cuda-0123abcd", "install_method": "venv"}
    record = {"environment": environment, "framework_version": "2.15.0", "ranks": []}
    assert gpu_kernels.library(record) == ("", "")


def test_the_answer_names_missing_machine_code_and_what_could_help(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = "/venvs/tensorflow-cuda-0123abcd"
    slow = peak_on(tmp_path, monkeypatch, H100, "tensorflow", where, "2.21.0")
    fast = replace(
        slow, framework="pytorch", tflops=10 * (slow.tflops or 0.0), library="", remedy=""
    )
    runs = repeats(
        100.0, framework="tensorflow", precision=slow.precision, hardware=slow.hardware,
        machine=slow.machine, accelerator="cuda", cores_per_device=None,
    )  # fmt: skip
    inputs = Inputs(grouping.group(runs, None), peaks=PeakFlopsLookup([slow, fast]))
    (sentence,) = slow_libraries(frames.build(inputs))
    assert "no machine code for compute capability 9.0, PTX for 9.0" in sentence
    assert sentence.endswith(slow.remedy)
