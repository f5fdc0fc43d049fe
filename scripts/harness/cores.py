"""Assign logical cores to ranks. On a CPU a device is a fixed set of cores."""

from __future__ import annotations

import glob
import os
from typing import Callable, Dict, Iterable, List, Optional, Sequence

from core import limits

from harness.hardware import file_text, parse_list, physical_cores, siblings


def by_numa_node(root: str = "/sys/devices/system/node") -> Dict[int, List[int]]:
    """Return the logical cores of each NUMA node; {} where the kernel does not report them."""
    folders = glob.glob(os.path.join(root, "node[0-9]*"))
    numbers = sorted(int(os.path.basename(folder)[4:]) for folder in folders)
    return {n: parse_list(file_text(f"{root}/node{n}/cpulist") or "") for n in numbers}


def allowed() -> List[int]:
    """Return the logical cores this process may use."""
    return sorted(os.sched_getaffinity(0))


def restrict(most: Optional[int]) -> None:
    """Restrict this process and its children to ``most`` cores (None for no limit), and to the
    whole cores within the CPU quota. One thread of each physical core is kept first."""
    cores = allowed()
    fewest = min(number for number in (len(cores), most, limits.whole_cores()) if number)
    if fewest < len(cores):
        os.sched_setaffinity(0, deal(cores, 1, fewest)[0])


def deal(
    cores: Iterable[int],
    count: int,
    per_device: int,
    siblings: Callable[[int], List[int]] = siblings,
    nodes: Optional[Iterable[Iterable[int]]] = None,
) -> List[List[int]]:
    """Return ``per_device`` of the logical ``cores`` for each of ``count`` devices.

    ``nodes``: logical cores of each NUMA node; None for those of this machine.

    1. One thread of each physical core, where there are enough: no device slows another down, and a
    device alone is not faster than among others. 2. Else whole physical cores with all their
    threads, so that no two devices share a core. 3. Else, with too few physical cores, devices
    share them.

    If a NUMA node has enough cores for a device, all cores of the device are on one node."""
    groups = _by_node(physical_cores(cores, siblings), nodes)
    whole = [threads for group in groups for threads in group]
    most = min(per_device, len(whole) // count)
    places = [part for group in groups for part in _parts(group, most)]
    within = [part for part in places if len(part) == most]
    rest = [threads for part in places if len(part) < most for threads in part]
    devices = [*within, *_parts(rest, most)]
    dealt = []
    for own in devices[:count]:
        first = sorted((index, core) for threads in own for index, core in enumerate(threads))
        dealt.append(sorted(core for _, core in first[:per_device]))
    if [len(own) for own in dealt] == [per_device] * count:
        return dealt
    packed = [core for threads in whole for core in threads]
    return [sorted(packed[n * per_device : (n + 1) * per_device]) for n in range(count)]


def _parts(cores: List[List[int]], size: int) -> List[List[List[int]]]:
    """Return groups of ``size`` physical cores, the last perhaps smaller."""
    return [cores[first : first + size] for first in range(0, len(cores), size)] if size else []


def _by_node(
    whole: Iterable[List[int]], nodes: Optional[Iterable[Iterable[int]]]
) -> List[List[List[int]]]:
    """Return physical cores by NUMA node, those of an unknown node last."""
    known = [set(own) for own in (by_numa_node().values() if nodes is None else nodes)]
    groups: List[List[List[int]]] = [[] for _ in [*known, None]]
    for threads in whole:
        node = next((n for n, own in enumerate(known) if threads[0] in own), len(known))
        groups[node].append(threads)
    return [group for group in groups if group]


def near_gpus(
    addresses: Sequence[str],
    usable: Sequence[int],
    root: str = "/sys/bus/pci/devices",
    siblings: Callable[[int], List[int]] = siblings,
) -> List[List[int]]:
    """Return cores for each GPU, given by PCI address, among those that the kernel calls local to
    it. Cores near several GPUs are divided evenly, both threads of a physical core to the same GPU.
    Given all GPUs, a GPU has the same cores in a run of one GPU and in a run of all, because these
    runs are compared. Lists are empty where the kernel does not say, or where a GPU would get no
    core."""
    # nvidia-smi writes the PCI domain with eight digits, the kernel with four.
    files = [f"{root}/{address.lower()[-12:]}/local_cpulist" for address in addresses]
    listed = [parse_list(file_text(file) or "") for file in files]
    local = [sorted(set(usable).intersection(cores)) for cores in listed]
    assigned: List[List[int]] = []
    for index, cores in enumerate(local):
        same = [gpu for gpu, others in enumerate(local) if others == cores]
        whole = physical_cores(cores, siblings)
        count = len(whole) // len(same)
        first = same.index(index) * count
        assigned.append(sorted(core for pair in whole[first : first + count] for core in pair))
    return assigned if all(assigned) else [[] for _ in addresses]
