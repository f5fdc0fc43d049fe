"""Where a run was measured: interpreter, packages, hardware, system, variables, code."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import socket
import subprocess
import sys
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import harness
from harness.cores import physical
from harness.processor import processor

_SCRIPTS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_KNOWN = "harness/environment.py"  # in a repository of ours, below scripts/ at its root
# What a hook or a shell has set for a repository of its own.
_OTHER_REPOSITORY = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
)
_ARCHIVED = os.path.join(os.path.dirname(_SCRIPTS), ".git_archival.txt")
_RELEVANT = re.compile(
    r"^(OMP|MKL|KMP|GOMP|OPENBLAS|BLIS|NUMEXPR|CUDA|CUDNN|CUBLAS|NVIDIA|NCCL|GLOO|UCX|TF|XLA|"
    r"TORCH|TORCHINDUCTOR|PYTORCH|JAX|FLAGS|MXNET|ONEFLOW|ONEDNN|DNNL|MALLOC|SLURM_CPU|TRITON)_"
    r"|^(TORCHDYNAMO|LD_PRELOAD|LD_LIBRARY_PATH|PYTHONPATH|PYTHONNOUSERSITE|PYTHONHASHSEED)"
)
# TF_VAR_ and TF_CLI_ are Terraform's, not TensorFlow's.
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|_KEY|^TF_(VAR|CLI)_", re.IGNORECASE)


def _text(path: str) -> Optional[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _line(path: str) -> Optional[str]:
    text = _text(path)
    return text.strip() if text else None


def _output(command: List[str], environment: Optional[Mapping[str, str]] = None) -> Optional[str]:
    try:
        finished = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
            universal_newlines=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return finished.stdout if finished.returncode == 0 else None


def _after_colon(path: str, key: str) -> Optional[str]:
    for line in (_text(path) or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def gpus() -> List[Dict[str, Any]]:
    """Name, memory in bytes, driver, uuid and PCI address of every NVIDIA GPU, in the order of
    these; empty where there is none."""
    query = "--query-gpu=name,memory.total,driver_version,uuid,pci.bus_id"
    lines = _output(["nvidia-smi", query, "--format=csv,noheader,nounits"]) or ""
    found = []
    for line in lines.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 5:
            name, mebibytes, driver, uuid, address = parts
            memory = int(mebibytes) * 2**20 if mebibytes.isdigit() else None
            found.append(
                {
                    "name": name,
                    "memory_bytes": memory,
                    "driver": driver,
                    "uuid": uuid,
                    "pci_address": address,
                }
            )
    return found


def visible_gpus(variables: Mapping[str, str]) -> List[str]:
    """The GPUs that a process with these variables may use, as CUDA names them: numbers, or the
    beginnings of their uuids."""
    given = variables.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return [str(number) for number in range(len(gpus()))]
    return [part.strip() for part in given.split(",") if part.strip() not in ("", "-1")]


def gpu_addresses(visible: Sequence[str]) -> List[str]:
    """PCI addresses of these GPUs, "" for one that is not found."""
    known = gpus()

    def address(name: str) -> str:
        if name.isdigit():
            return str(known[int(name)]["pci_address"]) if int(name) < len(known) else ""
        return next((g["pci_address"] for g in known if g["uuid"].startswith(name)), "")

    return [address(name) for name in visible]


def hardware(cores: Sequence[int]) -> Dict[str, Any]:
    """Processor by name and in numbers, how many logical cores this process may use (``cores``)
    and of how many physical ones they are, memory in bytes, GPUs."""
    model = _after_colon("/proc/cpuinfo", "model name") or platform.processor()
    memory = (_after_colon("/proc/meminfo", "MemTotal") or "").split()
    return {
        "cpu": model or platform.machine(),
        "processor": processor(),
        "cores": len(cores),
        "physical_cores": len(physical(cores)),
        "memory_bytes": int(memory[0]) * 1024 if memory else None,
        "gpus": gpus(),
    }


#: Of control groups, version 2 and 1.
_OOM_COUNTERS = ("memory.events", "memory.oom_control")


def control_groups(controller: str) -> List[str]:
    """Folders of the control groups this process is in, innermost first: those of version 2, or
    of version 1's ``controller`` (memory, cpu)."""
    for line in (_text("/proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            root = os.path.join("/sys/fs/cgroup", controller if controllers else "")
            parts = [part for part in path.split("/") if part not in ("", "..")]
            if os.path.isdir(root):
                lengths = range(len(parts), -1, -1)
                return [os.path.join(root, *parts[:length]) for length in lengths]
    return []


def _numbers(folder: str, name: str) -> List[int]:
    """The leading numbers of a control file; empty where it says ``max`` or is not there."""
    words = (_text(os.path.join(folder, name)) or "").split()
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []


def memory_bytes() -> int:
    """What there is for this process: the machine's, or the tightest control group's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(total, _memory_limit() or total)


def _memory_limit() -> Optional[int]:
    """The tightest limit in bytes; None without one (version 1 says so with a huge number)."""
    limits = [
        number
        for folder in control_groups("memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        for number in _numbers(folder, name)
        if number < 2**60
    ]
    return min(limits) if limits else None


def _cpu_limit() -> Optional[float]:
    """The tightest limit in cores; None without one."""
    limits = []
    for folder in control_groups("cpu"):
        quota = _numbers(folder, "cpu.max")
        quota = quota or _numbers(folder, "cpu.cfs_quota_us") + _numbers(
            folder, "cpu.cfs_period_us"
        )
        if len(quota) == 2 and quota[1] > 0:
            limits.append(quota[0] / quota[1])
    return min(limits) if limits else None


def system() -> Dict[str, Any]:
    """Host, operating system, kernel, frequency governor, control group limits (cores, bytes)."""
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', _text("/etc/os-release") or "", re.MULTILINE)
    return {
        "host": socket.gethostname(),
        "os": name.group(1) if name else platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "governor": _line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "cgroup_cpu_limit": _cpu_limit(),
        "cgroup_memory_limit_bytes": _memory_limit(),
    }


def variables(environment: Mapping[str, str]) -> Dict[str, str]:
    """Those of a rank's variables that change how a framework runs; never secrets."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if _RELEVANT.search(name) and not _SECRET.search(name)
    }


def _files() -> List[str]:
    found: List[str] = []
    for folder, folders, names in os.walk(_SCRIPTS):
        folders[:] = [name for name in folders if name != "__pycache__"]
        found.extend(
            os.path.join(folder, name) for name in names if name.endswith((".py", ".json"))
        )
    return sorted(found)


def scheduler(variables: Mapping[str, str]) -> Optional[Dict[str, str]]:
    """The job of the scheduler that this process belongs to, as that names it; None without."""
    if "SLURM_JOB_ID" not in variables:
        return None
    told = {"name": "slurm"}
    for key in ("job_id", "job_partition", "job_nodelist", "cluster_name"):
        value = variables.get(f"SLURM_{key.upper()}")
        if value:
            told[key.replace("job_id", "job").replace("job_", "")] = value
    return told


def _from_git() -> Tuple[Optional[str], Optional[bool]]:
    """The commit, and whether ``scripts/`` differs from it, from a repository that is ours: another
    one around us, or one that does not know these files, says nothing of them."""
    outside = {name: value for name, value in os.environ.items() if name not in _OTHER_REPOSITORY}
    outside["GIT_OPTIONAL_LOCKS"] = "0"
    git = ["git", "-C", _SCRIPTS]
    known = _output([*git, "ls-files", "--full-name", "--", _KNOWN], outside)
    commit = _output([*git, "rev-parse", "HEAD"], outside)
    status = _output([*git, "status", "--porcelain", "--", "."], outside)
    if known is None or known.strip() != f"scripts/{_KNOWN}" or not commit or status is None:
        return None, None
    return commit.strip(), bool(status)


def _from_archive() -> Optional[str]:
    """The commit that ``git archive`` has written into its copy of a file."""
    found = re.search(r"^node: ([0-9a-f]{40,64})$", _text(_ARCHIVED) or "", re.MULTILINE)
    return found.group(1) if found else None


def code() -> Dict[str, Any]:
    """Version of the harness, sha256 over ``scripts/``, the commit, and whether ``scripts/``
    differs from it: of git, of an unpacked archive the commit alone, else not known."""
    digest = hashlib.sha256()
    for path in _files():
        with open(path, "rb") as file:
            content = file.read()
        name = os.path.relpath(path, _SCRIPTS)
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    commit, modified = _from_git()
    return {
        "version": harness.VERSION,
        "sha256": digest.hexdigest(),
        "commit": commit or _from_archive(),
        "modified": modified,
    }


def capture(
    way: str, cores: Sequence[int], packages: Mapping[str, str], rank_environment: Mapping[str, str]
) -> Dict[str, Any]:
    """The record's ``environment``. ``cores``: logical cores this process may use."""
    return {
        "way": way,
        "python": platform.python_version(),
        "prefix": sys.prefix,
        "packages": dict(packages),
        "hardware": hardware(cores),
        "system": system(),
        "scheduler": scheduler(os.environ),
        "variables": variables(rank_environment),
        "code": code(),
    }


def oom_kills() -> int:
    """How many processes the kernel has killed for want of memory: in this process's own control
    group, where it has one that counts them, whoever was short of memory; else on this machine."""
    own = control_groups("memory")[:-1][:1]  # the last one is the root, which does not count
    counters = [os.path.join(folder, name) for folder in own for name in _OOM_COUNTERS]
    for source in (*counters, "/proc/vmstat"):
        found = re.search(r"^oom_kill (\d+)$", _text(source) or "", re.MULTILINE)
        if found:
            return int(found.group(1))
    return 0
