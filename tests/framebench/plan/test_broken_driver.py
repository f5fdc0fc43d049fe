"""A GPU driver that fails is said, and never a silent measurement of the CPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from framebench.cases.fitting import accelerator_of
from framebench.config.validation import ConfigError
from framebench.machine import local

from ... import fake_gpus

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


@pytest.mark.parametrize(
    ("does", "said"),
    [
        (f"echo '{MISMATCH}'; exit 18", MISMATCH),
        (f"echo '{MISMATCH}' >&2; exit 18", MISMATCH),
        ("exit 9", "exit status 9"),
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
        with pytest.raises(ConfigError, match=said):
            accelerator_of(settings, machine)
    cpu: Any = SimpleNamespace(accelerator="cpu")
    assert accelerator_of(cpu, machine) == "cpu"
    auto: Any = SimpleNamespace(accelerator="auto")
    assert accelerator_of(auto, replace(machine, fault="")) == "cpu"
