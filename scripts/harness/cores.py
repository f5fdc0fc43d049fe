"""Which logical cores a rank gets. On a CPU a device is a fixed set of cores."""

from __future__ import annotations

import os
from typing import Callable, Dict, Iterable, List, Sequence, Tuple

#: What the numeric libraries underneath the frameworks read to size their thread pools.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def parse_list(text: str) -> List[int]:
    """Linux's list format: ``0-2,5`` is 0, 1, 2, 5."""
    cores: List[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cores.extend(range(int(first), int(last or first) + 1))
    return cores


def siblings(core: int) -> List[int]:
    """The logical cores that are threads of the same physical core, itself included."""
    path = f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
    try:
        with open(path) as file:
            return parse_list(file.read())
    except (OSError, ValueError):
        return [core]


def numa_nodes(cores: Iterable[int], root: str = "/sys/devices/system/node") -> List[int]:
    """The NUMA nodes that these cores belong to; empty where the kernel does not tell."""
    wanted, found = set(cores), []
    try:
        names = os.listdir(root)
    except OSError:
        return []
    for name in names:
        if name.startswith("node") and name[4:].isdigit():
            try:
                with open(os.path.join(root, name, "cpulist")) as file:
                    if wanted.intersection(parse_list(file.read())):
                        found.append(int(name[4:]))
            except (OSError, ValueError):
                continue
    return sorted(found)


def allowed(siblings: Callable[[int], List[int]] = siblings) -> List[int]:
    """The logical cores this process may use: one of each physical core first, so that few
    ranks never share a physical core while others idle."""
    return _physical_first(os.sched_getaffinity(0), siblings)


def _physical_first(
    cores: Iterable[int], siblings: Callable[[int], List[int]] = siblings
) -> List[int]:
    usable = set(cores)

    def key(core: int) -> Tuple[int, int]:
        shared = sorted(usable.intersection(siblings(core)) | {core})
        return shared.index(core), core

    return sorted(usable, key=key)


def share(cores: List[int], local_rank: int, per_device: int) -> List[int]:
    """The cores of one rank out of the ordered ``cores`` of its node."""
    return sorted(cores[local_rank * per_device : (local_rank + 1) * per_device])


def near_gpus(
    addresses: Sequence[str],
    usable: Sequence[int],
    root: str = "/sys/bus/pci/devices",
    siblings: Callable[[int], List[int]] = siblings,
) -> List[List[int]]:
    """For each GPU, by its PCI address, cores of its own among those that the kernel calls local to
    it; those that several are near to are dealt out evenly, both threads of a physical core to the
    same. Empty lists where the kernel does not tell, or where a GPU would be left without one."""
    local = [sorted(set(usable).intersection(_local(address, root))) for address in addresses]
    found: List[List[int]] = []
    for place, cores in enumerate(local):
        same = [other for other, others in enumerate(local) if others == cores]
        threads: Dict[Tuple[int, ...], List[int]] = {}
        for core in cores:
            threads.setdefault(tuple(siblings(core)), []).append(core)
        physical = list(threads.values())
        count = len(physical) // len(same)
        first = same.index(place) * count
        found.append(sorted(core for pair in physical[first : first + count] for core in pair))
    return found if all(found) else [[] for _ in addresses]


def _local(address: str, root: str) -> List[int]:
    # nvidia-smi writes the domain with eight digits, the kernel with four.
    domain, _, rest = address.lower().partition(":")
    try:
        with open(os.path.join(root, f"{domain[-4:]}:{rest}", "local_cpulist")) as file:
            return parse_list(file.read())
    except (OSError, ValueError):
        return []
