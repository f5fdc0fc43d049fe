"""Processor, memory and GPUs of this machine."""

from __future__ import annotations

import platform
from typing import Any, Dict, List, Mapping, Sequence

from harness.machine.cores import physical
from harness.machine.processor import processor
from harness.machine.sources import command_output, file_entry


def gpus() -> List[Dict[str, Any]]:
    """Return name, memory in bytes, driver, uuid and PCI address of every NVIDIA GPU, ordered by
    address; empty without GPUs."""
    query = "--query-gpu=name,memory.total,driver_version,uuid,pci.bus_id"
    lines = command_output(["nvidia-smi", query, "--format=csv,noheader,nounits"]) or ""
    devices = []
    for line in lines.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 5:
            name, mebibytes, driver, uuid, address = parts
            memory = int(mebibytes) * 2**20 if mebibytes.isdigit() else None
            devices.append(
                {
                    "name": name,
                    "memory_bytes": memory,
                    "driver": driver,
                    "uuid": uuid,
                    "pci_address": address,
                }
            )
    return devices


def visible_gpus(variables: Mapping[str, str]) -> List[str]:
    """Return the GPUs that a process with these variables may use, as CUDA names them: numbers, or
    beginnings of uuids."""
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [str(number) for number in range(len(gpus()))]
    return [part.strip() for part in visible.split(",") if part.strip() not in ("", "-1")]


def gpu_addresses(visible: Sequence[str]) -> List[str]:
    """Return the PCI addresses of these GPUs, "" for an unknown one."""
    known = gpus()

    def address(name: str) -> str:
        if name.isdigit():
            return str(known[int(name)]["pci_address"]) if int(name) < len(known) else ""
        return next((g["pci_address"] for g in known if g["uuid"].startswith(name)), "")

    return [address(name) for name in visible]


def hardware(cores: Sequence[int]) -> Dict[str, Any]:
    """Return processor, number of logical cores of this process (``cores``) and of their physical
    ones, memory in bytes, and GPUs."""
    model = file_entry("/proc/cpuinfo", "model name") or platform.processor()
    memory = (file_entry("/proc/meminfo", "MemTotal") or "").split()
    return {
        "cpu": model or platform.machine(),
        "processor": processor(),
        "cores": len(cores),
        "physical_cores": len(physical(cores)),
        "memory_bytes": int(memory[0]) * 1024 if memory else None,
        "gpus": gpus(),
    }
