"""What this machine offers: cores and GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """``cores`` that this process may use; number of NVIDIA ``gpus``."""

    cores: int
    gpus: int


def detect() -> Machine:
    """Look at this machine. A GPU counts if ``nvidia-smi`` lists it and CUDA_VISIBLE_DEVICES does
    not hide it."""
    return Machine(cores=len(os.sched_getaffinity(0)), gpus=_gpus())


def _gpus() -> int:
    if shutil.which("nvidia-smi") is None:
        return 0
    listed = subprocess.run(
        ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=60, check=False
    )
    count = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count
    return min(count, len([part for part in visible.split(",") if part.strip() not in ("", "-1")]))
