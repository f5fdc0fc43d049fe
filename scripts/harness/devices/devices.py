"""The devices that a run may choose from where runs share a machine, and what each takes."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from harness.adapter import Mismatch
from harness.machine import cores as cores_of
from harness.machine import hardware


class Device(NamedTuple):
    """``name``: of a GPU as in CUDA_VISIBLE_DEVICES, of a set of cores its number. ``cores``: what
    its rank is pinned to, empty where it is not. ``locks``: what nobody else may have meanwhile."""

    name: str
    cores: List[int]
    locks: List[str]


def available(
    accelerator: str,
    per_device: Optional[int],
    cores: Sequence[int],
    variables: Mapping[str, str],
    wanted: int = 1,
    siblings: Callable[[int], List[int]] = cores_of.siblings,
) -> List[Device]:
    """All that a run with these ``variables`` may choose from, best first. ``cores``: the logical
    cores that it may use; ``per_device``: how many of them each gets, None for those that are near
    to its GPU; ``wanted``: how many devices the run takes. Raises Mismatch where GPUs cannot be
    told apart.

    Where a device is a set of cores, it takes all threads of their physical cores: with a neighbour
    there, it would be no whole device. Two share physical cores only where so many are ``wanted``
    that there is no other way.
    """
    if accelerator == "cuda":
        return _gpus(per_device, cores, variables, siblings)
    found = []
    size = per_device or 1
    whole = len(cores_of.physical(cores, siblings)) // size
    count = whole if wanted <= whole else len(cores) // size
    for number, own in enumerate(_shares(count, size, cores, siblings)):
        physical = {f"core-{min([core, *siblings(core)])}" for core in own}
        found.append(Device(str(number), own, sorted(physical)))
    return found


def among(gpus: Sequence[Dict[str, Any]], own: Sequence[Device]) -> List[Dict[str, Any]]:
    """Those of the machine's ``gpus`` that are among a run's ``own`` devices: others may be of
    another kind."""
    locks = {lock for device in own for lock in device.locks}
    return [gpu for gpu in gpus if _lock_of(gpu["uuid"]) in locks]


def _shares(
    count: int, per_device: int, cores: Sequence[int], siblings: Callable[[int], List[int]]
) -> List[List[int]]:
    """The cores of each device."""
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
    places = [_place(name, known) for name in names]
    # What nvidia-smi does not list, such as a part of a GPU, keeps its name.
    locks = [
        _lock_of(name if place is None else known[place]["uuid"])
        for name, place in zip(names, places)
    ]
    if per_device:
        count = min(len(names), len(cores) // per_device)
        shares = _shares(count, per_device, cores, siblings)
    else:
        # Of all GPUs, whichever this run sees: those of its neighbours have others.
        near = cores_of.near_gpus([gpu["pci_address"] for gpu in known], cores)
        shares = [[] if place is None else near[place] for place in places]
        shares = shares if all(shares) else [[] for _ in names]
    return [Device(name, own, [lock]) for name, own, lock in zip(names, shares, locks)]


def _place(name: str, known: Sequence[Dict[str, Any]]) -> Optional[int]:
    """Which of the ``known`` GPUs CUDA calls by ``name``: a number, a uuid, or the beginning of
    one."""
    if name.isdigit():
        return int(name) if int(name) < len(known) else None
    like = [place for place, gpu in enumerate(known) if gpu["uuid"].startswith(name)]
    return like[0] if len(like) == 1 else None


def _lock_of(uuid: str) -> str:
    return "gpu-" + uuid.replace("/", "-")
