"""Hardware of this machine as the kernel and ``nvidia-smi`` report it: cores, processor with the
properties that distinguish models of the same name, memory, GPUs and network interfaces."""

from __future__ import annotations

import fcntl
import glob
import os
import platform
import re
import socket
import struct
from functools import lru_cache
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from core.gpus import VISIBLE, Gpu, GpuError, list_gpus

_CPUINFO = "/proc/cpuinfo"
_CPU0 = "/sys/devices/system/cpu/cpu0"
_OF_CACHE = ("level", "type", "size")
_OF_GPU = ("name", "memory_bytes", "driver", "uuid", "pci_address", "capability")
#: Keys of /proc/cpuinfo on x86 and on ARM.
_NAMES = {
    "vendor": ("vendor_id", "CPU implementer"),
    "family": ("cpu family", "CPU architecture"),
    "model": ("model", "CPU part"),
    "stepping": ("stepping", "CPU revision"),
    "microcode": ("microcode",),
}
#: Instruction sets that decide which linear algebra code runs.
_INSTRUCTIONS = re.compile(
    r"^(sse4_2|avx|avx2|fma|f16c|avx512\w*|avx_\w+|avx10\w*|amx_\w+"
    r"|asimd\w*|sve\w*|sme|sme2|bf16|i8mm)$"
)
_SIOCGIFADDR = 0x8915


def file_text(path: str) -> Optional[str]:
    """Return the text of a file; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def file_line(path: str) -> Optional[str]:
    """Return the text of a file of one line; None where it is empty or cannot be read."""
    text = file_text(path)
    return text.strip() if text else None


def file_entry(path: str, key: str) -> Optional[str]:
    """Return the first value of ``key`` in a file of lines ``key: value``; None where there is
    none."""
    for line in (file_text(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def parse_list(text: str) -> List[int]:
    """Parse Linux's list format: ``0-2,5`` is 0, 1, 2, 5."""
    cores: List[int] = []
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cores.extend(range(int(first), int(last or first) + 1))
    return cores


def siblings(core: int) -> List[int]:
    """Return the logical cores that are threads of the same physical core, including this one."""
    listed = file_text(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    return parse_list(listed) if listed else [core]


def physical_cores(
    cores: Iterable[int], siblings: Callable[[int], List[int]] = siblings
) -> List[List[int]]:
    """Return the physical cores of these logical ``cores``, each as the list of its threads that
    are in ``cores``."""
    threads: Dict[Tuple[int, ...], List[int]] = {}
    for core in sorted(cores):
        threads.setdefault(tuple(sorted({core, *siblings(core)})), []).append(core)
    return list(threads.values())


def describe(cores: Sequence[int]) -> Dict[str, Any]:
    """Return processor, number of logical cores of this process (``cores``) and of their physical
    cores, memory in bytes, and GPUs; if GPUs cannot be listed, ``gpus_fault`` has the reason."""
    model = file_entry(_CPUINFO, "model name") or platform.processor()
    memory = (file_entry("/proc/meminfo", "MemTotal") or "").split()
    _, fault = listed()
    return {
        "cpu": model or platform.machine(),
        "processor": processor(),
        "cores": len(cores),
        "physical_cores": len(physical_cores(cores)),
        "memory_bytes": int(memory[0]) * 1024 if memory else None,
        "gpus": _own_gpus(),
        **({"gpus_fault": fault} if fault else {}),
    }


def _caches(folder: str) -> Dict[str, str]:
    """Return the size of each cache of the first core, as the kernel writes it: ``{"L1 Data":
    "32K"}``."""
    sizes = {}
    for cache in sorted(glob.glob(os.path.join(folder, "index*"))):
        level, kind, size = (file_line(os.path.join(cache, name)) for name in _OF_CACHE)
        if not (level and kind and size):
            return {}
        sizes[f"L{level} {kind}"] = size
    return sizes


def processor(cpuinfo: str = _CPUINFO, cpu0: str = _CPU0) -> Dict[str, Any]:
    """Return vendor, family, model, stepping and microcode as the kernel numbers them; sockets,
    physical and logical cores of the whole machine; caches; and instruction sets that matter for
    linear algebra.

    Values that the kernel does not report are missing."""
    blocks = []  # entries of each logical core
    for block in (file_text(cpuinfo) or "").split("\n\n"):
        lines = (line.partition(":") for line in block.splitlines())
        entries = {name.strip(): value.strip() for name, _, value in lines}
        blocks += [entries] if "processor" in entries else []
    if not blocks:
        return {}
    first = blocks[0]
    description: Dict[str, Any] = {}
    for key, names in _NAMES.items():
        value = next((first[name] for name in names if first.get(name)), None)
        if value is not None:
            description[key] = value
    sockets = {block.get("physical id") for block in blocks}
    if None not in sockets:
        description["sockets"] = len(sockets)
        physical = {(block["physical id"], block.get("core id")) for block in blocks}
        description["physical_cores"] = len(physical)
    description["logical_cores"] = len(blocks)
    description["caches"] = _caches(os.path.join(cpu0, "cache"))
    flags = (first.get("flags") or first.get("Features") or "").split()
    description["instruction_sets"] = sorted(flag for flag in flags if _INSTRUCTIONS.match(flag))
    return description


def gpus() -> List[Dict[str, Any]]:
    """Return name, memory in bytes, driver, uuid, PCI address, compute capability and state of
    every NVIDIA GPU, ordered by address; the instances of a GPU that MIG divides replace it. Empty
    without GPUs."""
    return [_facts(instance) for gpu in listed()[0] for instance in gpu.instances or (gpu,)]


@lru_cache(maxsize=None)  # nvidia-smi takes seconds on machines with many GPUs
def listed() -> Tuple[List[Gpu], str]:
    """Return all NVIDIA GPUs, and the reason if they cannot be listed, else an empty text."""
    try:
        return list_gpus(), ""
    except GpuError as error:
        return [], str(error)


def _facts(gpu: Gpu) -> Dict[str, Any]:
    return {**{fact: getattr(gpu, fact) for fact in _OF_GPU}, "state": dict(gpu.state)}


def _own_gpus() -> List[Dict[str, Any]]:
    """Return the GPUs of a machine. GPUs that MIG divides are replaced by the instances that this
    process may use."""
    known, _ = listed()
    names = tuple(filter(None, map(str.strip, os.environ.get(VISIBLE, "").split(","))))
    found: List[Gpu] = []
    for gpu in known:
        named = [instance for instance in gpu.instances or () if instance.uuid.startswith(names)]
        found += named or [gpu]
    return [_facts(gpu) for gpu in found]


def visible_gpus(variables: Mapping[str, str]) -> List[str]:
    """Return the GPUs that a process with these variables may use, as CUDA names them: indices, or
    beginnings of uuids."""
    visible = variables.get(VISIBLE)
    if visible is None:
        return [str(number) for number in range(len({gpu["pci_address"] for gpu in gpus()}))]
    return [part.strip() for part in visible.split(",") if part.strip() not in ("", "-1")]


def index_of(name: str, known: Sequence[Mapping[str, Any]]) -> Optional[int]:
    """Return the index of the ``known`` GPU or instance that CUDA calls ``name``: CUDA's index of
    a whole GPU, a uuid, or the beginning of a uuid. Return None for another name."""
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


def interface_with(address: str) -> Optional[str]:
    """Return the name of the interface with this IPv4 ``address``; None without one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = struct.pack("256s", name.encode()[:15])
            try:
                answer = fcntl.ioctl(any_socket.fileno(), _SIOCGIFADDR, request)
            except OSError:
                continue  # the interface has no IPv4 address
            if socket.inet_ntoa(answer[20:24]) == address:
                return name
    return None


def address_towards(address: str) -> str:
    """Return the address that this machine uses to reach another."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unsent:
        unsent.connect((address, 9))  # a UDP connect sends nothing
        return str(unsent.getsockname()[0])
