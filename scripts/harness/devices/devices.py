"""Devices that a run may choose from where runs share a machine, and the locks that each takes."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from harness.adapter import Mismatch
from harness.machine import cores as cores_of
from harness.machine import hardware


class Device(NamedTuple):
    """Device of a run.

    ``name``: of a GPU as in CUDA_VISIBLE_DEVICES, of a set of cores its number. ``cores``: those
    its rank is pinned to, or empty. ``locks``: names of the locks that it takes."""

    name: str
    cores: List[int]
    locks: List[str]


def available(
    accelerator: str,
    per_device: Optional[int],
    cores: Sequence[int],
    variables: Mapping[str, str],
    needed: int = 1,
    siblings: Callable[[int], List[int]] = cores_of.siblings,
) -> List[Device]:
    """Return all devices that a run with these ``variables`` may choose from, best first.

    ``cores``: logical cores that it may use. ``per_device``: number of them for each device, None
    for those near its GPU. ``needed``: number of devices of the run. Raises Mismatch where GPUs
    cannot be told apart.

    A device that is a set of cores takes all threads of its physical cores, because it would not be
    whole with a neighbour there. Two devices share physical cores only where ``needed`` leaves no
    other way."""
    if accelerator == "cuda":
        return _gpus(per_device, cores, variables, siblings)
    devices = []
    size = per_device or 1
    whole = len(cores_of.physical(cores, siblings)) // size
    count = whole if needed <= whole else len(cores) // size
    for number, own in enumerate(_shares(count, size, cores, siblings)):
        physical = {f"core-{min([core, *siblings(core)])}" for core in own}
        devices.append(Device(str(number), own, sorted(physical)))
    return devices


def among(gpus: Sequence[Dict[str, Any]], devices: Sequence[Device]) -> List[Dict[str, Any]]:
    """Return those of the machine's ``gpus`` that are among a run's ``devices`` devices."""
    locks = {lock for device in devices for lock in device.locks}
    return [gpu for gpu in gpus if _lock_of(gpu["uuid"]) in locks]


def _shares(
    count: int, per_device: int, cores: Sequence[int], siblings: Callable[[int], List[int]]
) -> List[List[int]]:
    """Return the cores of each device."""
    return cores_of.deal(cores, count, per_device, siblings) if count else []


def _gpus(
    per_device: Optional[int],
    cores: Sequence[int],
    variables: Mapping[str, str],
    siblings: Callable[[int], List[int]],
) -> List[Device]:
    names = hardware.visible_gpus(variables)
    if variables.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID" and any(map(str.isdigit, names)):
        raise Mismatch(
            "CUDA_DEVICE_ORDER is not PCI_BUS_ID, so that nobody knows which GPU a number means: "
            "unset it, or name GPUs by uuid in CUDA_VISIBLE_DEVICES"
        )
    known = hardware.gpus()
    places = [hardware.index_of(name, known) for name in names]
    # Devices that nvidia-smi does not list keep their name.
    locks = [
        _lock_of(name if index is None else known[index]["uuid"])
        for name, index in zip(names, places)
    ]
    if per_device:
        count = min(len(names), len(cores) // per_device)
        shares = _shares(count, per_device, cores, siblings)
    else:
        # Cores near all GPUs, not only this run's, so that neighbours get other cores.
        near = cores_of.near_gpus([gpu["pci_address"] for gpu in known], cores)
        shares = [[] if index is None else near[index] for index in places]
        shares = shares if all(shares) else [[] for _ in names]
    return [Device(name, cores, [lock]) for name, cores, lock in zip(names, shares, locks)]


def _lock_of(uuid: str) -> str:
    return "gpu-" + uuid.replace("/", "-")
