"""What this machine offers: cores and GPUs."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..files import bounded
from . import identities
from .identities import UNKNOWN, Identity


@dataclass(frozen=True)
class Machine:
    """``cores`` that this process may use; number of NVIDIA ``gpus``. ``memory`` says in words how
    much of it there is: that of the host in GiB, and the kinds of GPU. Of a cluster: one of its
    nodes, and how many ``nodes`` a run may take. ``threads_per_core``: the most of the ``cores``
    that are threads of one physical core; ``physical_cores``: how many of these there are, None
    where there are as many as ``cores``. ``identity``: by which its records are known; of a
    cluster nothing, because any of its nodes may have left them. ``named``: its nodes that may be
    measured one by one, and why one cannot be now, "" where it can. ``memory_bytes``: of a host,
    0 where that is not known. ``instruction_sets``: of its processor, as the kernel names them;
    none where they are not known, as of a cluster's nodes."""

    cores: int
    gpus: int
    memory: str = ""
    nodes: int = 1
    threads_per_core: int = 1
    physical_cores: int | None = None
    identity: Identity = UNKNOWN
    named: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 0
    instruction_sets: frozenset[str] = frozenset()


def detect() -> Machine:
    """Look at this machine. A GPU counts if ``nvidia-smi`` lists it and CUDA_VISIBLE_DEVICES does
    not hide it."""
    gpus, kinds = _gpus()
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # Rounded: another kernel keeps another few MiB for itself.
    memory = ", ".join([f"{round(pages / 2**30)} GiB", *kinds])
    cores = os.sched_getaffinity(0)
    threads = _threads(cores)
    return Machine(
        len(cores), gpus, memory, threads_per_core=max(threads), physical_cores=len(threads),
        identity=_identity(kinds), named={_node(): ""}, memory_bytes=pages,
        instruction_sets=frozenset(_instruction_sets().split()),
    )  # fmt: skip


def _identity(kinds: list[str]) -> Identity:
    """As the records of this machine have it, read where the harness reads it, but for what the
    host's name makes superfluous: the processor in numbers."""
    cpu = _entry("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()
    size, *_ = [*_entry("/proc/meminfo", "MemTotal").split(), "0"]
    # In an allocation the scheduler chose the node, as the records say too.
    host = "" if "SLURM_JOB_ID" in os.environ else socket.gethostname()
    return Identity(", ".join([*kinds, cpu]), "", identities.memory(int(size) * 1024), host)


def _instruction_sets() -> str:
    """All flags of the processor, as x86 and ARM call them."""
    return _entry("/proc/cpuinfo", "flags") or _entry("/proc/cpuinfo", "Features")


def _node() -> str:
    """As the harness calls it."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def _entry(path: str, key: str) -> str:
    """The first value of that name in a file of the kernel; "" without one."""
    with contextlib.suppress(OSError):
        for line in bounded.read_bytes(path).decode("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def _gpus() -> tuple[int, list[str]]:
    """How many may be used, and the kinds that there are."""
    if shutil.which("nvidia-smi") is None:
        return 0, []
    listed = subprocess.run(
        ["nvidia-smi", "-L"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        encoding="utf-8",
        errors="replace",
    )
    lines = [line for line in listed.stdout.splitlines() if line.startswith("GPU ")]
    kinds = sorted({line.partition(": ")[2].partition(" (UUID")[0] for line in lines})
    count = len(lines)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return count, kinds
    shown = [part for part in visible.split(",") if part.strip() not in ("", "-1")]
    return min(count, len(shown)), kinds


def _threads(cores: Iterable[int], sys: Path = Path("/sys")) -> list[int]:
    """How many of these logical cores each physical one has. One that the kernel does not tell of
    is taken for a core of its own."""
    shared: Counter[str] = Counter()
    for core in cores:
        topology = sys / "devices" / "system" / "cpu" / f"cpu{core}" / "topology"
        try:
            shared[bounded.read_text(topology / "thread_siblings_list")] += 1
        except OSError:
            shared[str(core)] += 1
    return list(shared.values())
