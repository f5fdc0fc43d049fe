"""A failing GPU driver is reported, and the CPU is never measured silently."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from core import gpus
from framebench.cases.fitting import accelerator_of
from framebench.config.validation import ConfigError
from framebench.machine import local

from ... import fake_gpus

GPU = "NVIDIA A100-SXM4-40GB, 40960, 580.95.05, GPU-000, 0:10:00.0, Disabled, 8.0"
LOST = "[GPU is lost]"
MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (f"echo '{MISMATCH}'; exit 18", MISMATCH),
        (
            f"echo '{GPU}'; echo '{LOST}, {LOST}, 580.95.05, {LOST}, 0:3B:00.0, {LOST}, {LOST}'",
            LOST,
        ),
        ("exec sleep 60", "no answer within 0.1 s"),
    ],
)
def test_a_broken_driver_asks_for_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, said: str
) -> None:
    monkeypatch.setattr(local, "SMI_SECONDS", 0.1 if "sleep" in does else 60)
    fake_gpus.write(tmp_path, f"#!/bin/sh\n{does}\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    machine = local.detect()
    for asked in ("auto", "cuda"):
        settings: Any = SimpleNamespace(accelerator=asked)
        with pytest.raises(ConfigError, match=re.escape(said)):
            accelerator_of(settings, machine)
    cpu: Any = SimpleNamespace(accelerator="cpu")
    assert accelerator_of(cpu, machine) == "cpu"
    auto: Any = SimpleNamespace(accelerator="auto")
    assert accelerator_of(auto, replace(machine, fault="")) == "cpu"


#: Double of libcuda.so.1 whose initialisation returns a given status.
LIBRARY = """
#include <stdlib.h>
#include <unistd.h>
int cuInit(unsigned flags) {{ {does} }}
int cuGetErrorString(int status, const char **text) {{ *text = "{words}"; return 0; }}
int cuDriverGetVersion(int *version) {{ *version = 13000; return 0; }}
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, does: str, words: str = "") -> None:
    """Install a driver whose ``cuInit`` does this; ``nvidia-smi`` lists a GPU all the same."""
    source = folder / "cuda.c"
    source.write_text(LIBRARY.format(does=does, words=words))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True)
    fake_gpus.write(folder, f"#!/bin/sh\necho '{GPU}'\n")
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.parametrize(
    ("status", "words", "remedy"),
    [
        (802, "system not yet initialized", "nvidia-fabricmanager"),
        (803, "system has unsupported display driver / cuda driver combination", "reboot"),
        (999, "unknown error", "nvidia_uvm"),
        (0, "", ""),
    ],
)
def test_cuda_that_does_not_start_is_said_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, words: str, remedy: str
) -> None:
    install(tmp_path, monkeypatch, f"return {status};", words)
    machine = local.detect()
    assert machine.gpus == (not status)
    assert f"error {status}, {words}" in machine.fault if status else not machine.fault
    assert remedy in machine.fault


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("sleep(60); return 0;", "CUDA does not start within 2 s"),
        ("abort();", "CUDA ends the process that starts it (-6)"),
    ],
)
def test_cuda_that_hangs_or_crashes_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, said: str
) -> None:
    install(tmp_path, monkeypatch, does)
    monkeypatch.setattr(local, "_CUDA_SECONDS", 2 if "sleep" in does else 60)
    machine = local.detect()
    assert machine.gpus == 0
    assert machine.fault.startswith(said)
    assert "\n" not in machine.fault


def test_gpus_with_a_corrupted_inforom_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warning = "WARNING: infoROM is corrupted at gpu 0000:10:00.0"
    fake_gpus.write(tmp_path, f"#!/bin/sh\necho '{GPU}'; echo '{warning}'; exit 14\n")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    machine = local.detect()
    assert (machine.gpus, machine.fault) == (1, "")


def test_gpus_that_no_command_lists_ask_for_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container without the driver's utilities, and a machine without a driver."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpus, "LOADED", tmp_path / "version")
    monkeypatch.setattr(gpus, "PCI_DEVICES", tmp_path / "devices")

    def add(address: str, vendor: str, kind: str) -> None:
        (tmp_path / "devices" / address).mkdir(parents=True)
        (tmp_path / "devices" / address / "vendor").write_text(f"{vendor}\n")
        (tmp_path / "devices" / address / "class").write_text(f"{kind}\n")

    add("0000:00:02.0", "0x8086", "0x030000")  # Intel's GPU
    add("0000:01:00.1", "0x10de", "0x040300")  # audio of NVIDIA's GPU
    assert local.detect().fault == ""
    add("0000:01:00.0", "0x10de", "0x030200")
    assert "devices/0000:01:00.0 is a sign of NVIDIA's GPUs" in local.detect().fault
    (tmp_path / "version").touch()
    assert "version is a sign of NVIDIA's GPUs" in local.detect().fault
