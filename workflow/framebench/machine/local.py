"""Cores, GPUs and memory of this machine."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core import gpus, limits, programs
from core.gpus import Gpu, GpuError
from harness.hardware import file_entry, siblings

from . import identities
from .identities import UNKNOWN, Identity

#: Seconds after which ``nvidia-smi`` is taken to hang.
SMI_SECONDS = 60.0
_CPUS = "/proc/cpuinfo"
#: Seconds after which CUDA is taken to hang.
_CUDA_SECONDS = 120.0
#: Program that starts CUDA and prints its error, if any. A missing library is no error, because
#: frameworks may find one elsewhere.
_START = f"""
import sys
sys.path.insert(0, {str(Path(gpus.__file__).parents[1])!r})
from core import gpus
try:
    number, words = gpus.start_cuda()
except OSError:
    sys.exit()
if number:
    print(number, words)
"""
#: Remedies by CUDA's error number.
_REMEDIES = {
    802: "start NVIDIA's fabric manager, of the driver's version "
    "(systemctl start nvidia-fabricmanager), or look why it fails (journalctl -u "
    "nvidia-fabricmanager)",
    803: "one version of driver and libcuda.so.1: reboot after an update, and remove other copies "
    "of libcuda.so.1 from LD_LIBRARY_PATH",
    804: "no libcuda.so.1 of the package cuda-compat, which is for other GPUs, in LD_LIBRARY_PATH",
    999: "load the module nvidia_uvm anew (modprobe -r nvidia_uvm && modprobe nvidia_uvm), or "
    "reboot",
}
#: Folder of shared memory, through which NCCL and data loaders pass data.
SHARED = "/dev/shm"


@dataclass(frozen=True)
class Machine:
    """Resources of a machine, or of a node of a cluster.

    ``cores``: cores that this process may use; ``gpus``: number of NVIDIA GPUs; ``memory``: host
    memory in GiB and kinds of GPU, as text; ``nodes``: most nodes of a run; ``physical_cores``:
    None if equal to ``cores``; ``identity``: identity of its records, unknown for a cluster, whose
    nodes differ; ``named``: nodes that can be measured one by one, with the reason why one cannot
    now, else ""; ``memory_bytes``: memory of the host, 0 if unknown; ``instruction_sets``:
    instruction sets of the processor in the kernel's names, empty if unknown, as for a cluster;
    ``devices``: its usable GPUs and instances of MIG, empty if nothing is known of them; ``fault``:
    why GPUs cannot be used and what helps, else ""; ``most_cores``: ``cores`` if they are fewer
    than this process sees."""

    cores: int
    gpus: int
    memory: str = ""
    nodes: int = 1
    physical_cores: int | None = None
    identity: Identity = UNKNOWN
    named: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 0
    instruction_sets: frozenset[str] = frozenset()
    devices: tuple[Gpu, ...] = ()
    fault: str = ""
    most_cores: int | None = None


def detect(most_cores: int | None = None) -> Machine:
    """Return this machine's resources. Its cores are limited by ``most_cores``, from ``--cores``,
    and by the whole cores within the CPU quota of this process's control groups.
    A GPU counts if ``nvidia-smi`` lists it and CUDA_VISIBLE_DEVICES does not hide it."""
    devices, kinds, fault = _gpus()
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Rounded: kernels reserve different amounts of a few MiB.
    memory = ", ".join([f"{round(pages / 2**30)} GiB", *kinds])
    cores = os.sched_getaffinity(0)
    flags = file_entry(_CPUS, "flags") or file_entry(_CPUS, "Features") or ""  # x86 or ARM
    # the same name as the harness reports
    node = os.environ.get("SLURMD_NODENAME") or socket.gethostname()
    numbers = (len(cores), most_cores, limits.whole_cores())
    most = min(number for number in numbers if number is not None)
    return Machine(
        most, len(devices), memory,
        physical_cores=min(most, len({tuple(siblings(core)) for core in cores})),
        identity=_identity(kinds), named={node: ""}, memory_bytes=pages,
        instruction_sets=frozenset(flags.split()),
        devices=devices, fault=fault, most_cores=most if most < len(cores) else None,
    )  # fmt: skip


def shared_memory() -> int:
    """Return the bytes that shared memory can hold; 0 without any."""
    try:
        size = os.statvfs(SHARED)
    except OSError:
        return 0
    return size.f_frsize * size.f_blocks


def _identity(kinds: list[str]) -> Identity:
    """Return this machine's identity as in its records, read from the sources that the harness
    uses. The processor's numbers are left out: the host's name makes them redundant."""
    cpu = file_entry(_CPUS, "model name") or platform.processor() or platform.machine()
    size = (file_entry("/proc/meminfo", "MemTotal") or "0").split()[0]
    # In an allocation the scheduler chose the node; records omit the host then, too.
    host = "" if "SLURM_JOB_ID" in os.environ else socket.gethostname()
    return Identity(", ".join([*kinds, cpu]), "", identities.memory(int(size) * 1024), host)


def _gpus() -> tuple[tuple[Gpu, ...], list[str], str]:
    """Return the usable GPUs, the kinds of all, and why none can be used."""
    listed: list[Gpu] = []
    try:
        listed = gpus.list_gpus(SMI_SECONDS)
        visible = gpus.visible_gpus(listed, os.environ.get(gpus.VISIBLE))
    except GpuError as error:
        return (), sorted({gpu.name for gpu in listed}), str(error)
    # As in records, a GPU that MIG divides is replaced by its instances.
    kinds = {
        instance.kind
        for gpu in listed
        for instance in [own for own in gpu.instances or () if own in visible] or [gpu]
    }
    fault = _cuda_fault() if visible else ""
    return () if fault else tuple(visible), sorted(kinds), fault


def _cuda_fault() -> str:
    """Return why CUDA does not start and what helps; "" if it does, or has no library here.

    ``nvidia-smi`` may list GPUs that no program can use, for example without NVIDIA's fabric
    manager. Looked at once, before anything is built for the GPUs."""
    try:
        ended = programs.run([sys.executable, "-I", "-c", _START], timeout=_CUDA_SECONDS)
    except subprocess.TimeoutExpired:
        return f"CUDA does not start within {_CUDA_SECONDS:g} s; allowed: a driver that answers"
    number, _, words = ended.stdout.strip().partition(" ")
    if ended.returncode:
        return f"CUDA ends the process that starts it ({ended.returncode}); allowed: another driver"
    if not number:
        return ""
    remedy = _REMEDIES.get(int(number), "a driver that starts")
    return f"CUDA does not start: error {number}, {words}; allowed: {remedy}"
