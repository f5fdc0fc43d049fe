"""A fake ``nvidia-smi`` that lists made-up GPUs."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .processes import write_program

_PROGRAM = Path(__file__).parent / "programs" / "nvidia_smi.py"


def gpus(
    count: int,
    name: str,
    memory: int,
    driver: str,
    capability: str,
    mig: str = "Disabled",
    instances: Sequence[tuple[str, str]] = (),
) -> list[dict[str, Any]]:
    """Return GPUs as ``nvidia-smi`` reports them. ``memory``: in MiB; ``mig``: MIG mode;
    ``instances``: profile and UUID of each MIG instance, the same on every GPU."""
    return [
        {
            "name": name,
            "memory.total": str(memory),
            "driver_version": driver,
            "uuid": f"GPU-{number}{number}{number}",
            "pci.bus_id": f"00000000:{number + 16:02X}:00.0",
            "mig.mode.current": mig,
            "compute_cap": capability,
            "instances": [*instances],
        }
        for number in range(count)
    ]


def install(folder: Path, listed: list[dict[str, Any]]) -> str:
    """Write a command ``nvidia-smi`` to a folder and return the folder."""
    known = folder / "nvidia-smi.json"
    write(folder, f"#!/bin/sh\nexec '{sys.executable}' '{_PROGRAM}' '{known}' \"$@\"\n")
    known.write_text(json.dumps(listed))
    return str(folder)


def write(folder: Path, text: str) -> str:
    return str(write_program(folder / "nvidia-smi", text).parent)
