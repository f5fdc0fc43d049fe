"""Processor, memory and GPUs of this machine."""

from __future__ import annotations

import os
import platform
from typing import Any, Dict, List, Mapping, Optional, Sequence

from core.gpus import VISIBLE, Gpu, GpuError, list_gpus

from harness.machine.cores import physical
from harness.machine.processor import processor
from harness.machine.sources import file_entry


def gpus() -> List[Dict[str, Any]]:
    """Return name, memory in bytes, driver, uuid, PCI address and compute capability of every
    NVIDIA GPU, ordered by address, and in place of one that MIG divides of its instances; empty
    without GPUs."""
    return [_facts(instance) for gpu in _listed() for instance in gpu.instances or (gpu,)]


def _listed() -> List[Gpu]:
    try:
        return list_gpus()
    except GpuError:
        return []


def _facts(gpu: Gpu) -> Dict[str, Any]:
    return {
        "name": gpu.name,
        "memory_bytes": gpu.memory_bytes,
        "driver": gpu.driver,
        "uuid": gpu.uuid,
        "pci_address": gpu.pci_address,
        "capability": gpu.capability,
    }


def _own_gpus(variables: Mapping[str, str]) -> List[Dict[str, Any]]:
    """Return the GPUs of a machine; of GPUs that MIG divides only the instances that a process with
    these variables may use, which compute less than the whole."""
    known = _listed()
    names = tuple(filter(None, map(str.strip, variables.get(VISIBLE, "").split(","))))
    found: List[Gpu] = []
    for gpu in known:
        named = [instance for instance in gpu.instances or () if instance.uuid.startswith(names)]
        found += named or [gpu]
    return [_facts(gpu) for gpu in found]


def visible_gpus(variables: Mapping[str, str]) -> List[str]:
    """Return the GPUs that a process with these variables may use, as CUDA names them: numbers, or
    beginnings of uuids."""
    visible = variables.get(VISIBLE)
    if visible is None:
        return [str(number) for number in range(len({gpu["pci_address"] for gpu in gpus()}))]
    return [part.strip() for part in visible.split(",") if part.strip() not in ("", "-1")]


def index_of(name: str, known: Sequence[Mapping[str, Any]]) -> Optional[int]:
    """Return the index of the ``known`` GPU or instance that CUDA calls ``name``: the number of a
    whole GPU, a uuid, or its beginning. Return None for another name."""
    addresses = list(dict.fromkeys(gpu["pci_address"] for gpu in known))
    if name.isdigit():
        address = addresses[int(name)] if int(name) < len(addresses) else None
        like = [index for index, gpu in enumerate(known) if gpu["pci_address"] == address]
    else:
        like = [index for index, gpu in enumerate(known) if gpu["uuid"].startswith(name)]
    return like[0] if len(like) == 1 else None


def gpu_addresses(visible: Sequence[str]) -> List[str]:
    """Return the PCI addresses of these GPUs and instances, "" for an unknown one."""
    known = gpus()
    places = [index_of(name, known) for name in visible]
    return ["" if index is None else str(known[index]["pci_address"]) for index in places]


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
        "gpus": _own_gpus(os.environ),
    }
