"""NVIDIA GPUs and instances of MIG, as ``nvidia-smi`` lists and CUDA_VISIBLE_DEVICES names them;
start of CUDA by NVIDIA's driver."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from core import bounded, programs

#: NVIDIA's driver.
CUDA = "libcuda.so.1"
#: Variable that names the GPUs that CUDA shows a process.
VISIBLE = "CUDA_VISIBLE_DEVICES"
_SMI = "nvidia-smi"
_FIELDS = (
    *("name", "memory.total", "driver_version", "uuid", "pci.bus_id", "mig.mode.current"),
    "compute_cap",
)
#: What may make a GPU slower or faster than others of the same model.
_LIMIT, _DEFAULT, _ECC = "power.limit", "power.default_limit", "ecc.mode.current"
_STATE = (
    *(_LIMIT, _DEFAULT, "persistence_mode", "compute_mode", _ECC, "clocks.max.sm"),
    *("pcie.link.gen.max", "pcie.link.width.max", "pcie.link.width.current"),
)
_INSTANCE = re.compile(r"^\s+MIG\s+(\S+)\s+Device\s+\d+:\s+\(UUID:\s*([^)\s]+)\)")
_GPU = re.compile(r"^GPU \d+: .*\(UUID:\s*([^)\s]+)\)")
#: MIG profile with its memory: ``3g.20gb``, ``1g.10gb+me``; part of SLURM's GPU types, too.
_PROFILE = re.compile(r"\d+g\.(\d+)gb")
_VERSION = re.compile(r"^\d+(\.\d+)+$")
#: Exit status and warning of ``nvidia-smi`` for a corrupted infoROM, with which GPUs still work.
_INFOROM, _WARNING = 14, "WARNING: infoROM"
#: File that exists while the driver is loaded.
LOADED = Path("/proc/driver/nvidia/version")
PCI_DEVICES = Path("/sys/bus/pci/devices")
#: Beginning of the reason of a run whose ranks waited for each other for too long.
NOT_MET = "ranks did not meet within"
_VENDOR, _DISPLAY = "0x10de", "0x03"  # PCI vendor NVIDIA, PCI class of displays


class GpuError(Exception):
    """Raised where GPUs cannot be listed or used; the message has the reason, in the driver's own
    words where it has any, and after ``allowed:`` what helps."""


class Gpu(NamedTuple):
    """GPU, or instance of MIG.

    ``name``: name of an instance with its profile. ``memory_bytes``: None if unknown, the nominal
    size of an instance. ``capability``: compute capability, such as ``9.0``; "" if unknown.
    ``instances``: instances of a GPU that MIG divides, None without MIG. ``is_instance``: whether
    it is an instance of MIG. ``state``: name and value of limits and modes, as ``nvidia-smi``
    reports them."""

    name: str
    memory_bytes: Optional[int]
    driver: str
    uuid: str
    pci_address: str
    capability: str = ""
    instances: Optional[Tuple[Gpu, ...]] = None
    is_instance: bool = False
    state: Tuple[Tuple[str, str], ...] = ()

    @property
    def kind(self) -> str:
        """Name with what changes its speed; see :func:`kind`."""
        return kind(self.name, dict(self.state))


def kind(name: str, state: Mapping[str, str]) -> str:
    """Return the name of a GPU, with what makes it slower or faster than others of that name: a
    power limit below the default, and ECC in another mode than usual for such GPUs:
    ``NVIDIA L40S (ECC off) at 300 of 350 W``."""
    usual = "Disabled" if "RTX" in name else "Enabled"
    if state.get(_ECC) in {"Enabled", "Disabled"} - {usual}:
        name += f" (ECC {'off' if usual == 'Enabled' else 'on'})"
    try:
        limit, default = float(state[_LIMIT]), float(state[_DEFAULT])
    except (KeyError, ValueError):  # nvidia-smi does not report the value
        return name
    return name if limit >= default else f"{name} at {limit:g} of {default:g} W"


def list_gpus(seconds: float = 60.0) -> List[Gpu]:
    """Return all GPUs that ``nvidia-smi`` lists; none without that command.

    Raises GpuError if the command fails, lists no GPU or a broken one, or does not answer within
    ``seconds``, and if a machine with a GPU lacks the command."""
    if shutil.which(_SMI) is None:
        _require_no_gpu()
        return []
    query = [f"--query-gpu={','.join([*_FIELDS, *_STATE])}", "--format=csv,noheader,nounits"]
    gpus = _parse(_ask(query, seconds))
    if not any(gpu.instances is not None for gpu in gpus):
        return gpus
    listing = _ask(["-L"], seconds)
    return [
        gpu if gpu.instances is None else gpu._replace(instances=_instances(gpu, listing))
        for gpu in gpus
    ]


def visible_gpus(gpus: Sequence[Gpu], visible: Optional[str]) -> List[Gpu]:
    """Return the GPUs and instances that CUDA shows a process, in its order.

    ``visible``: value of CUDA_VISIBLE_DEVICES, None if it is not set. CUDA stops at the first entry
    that it does not know.

    Raises GpuError if all GPUs are hidden, if a name is unknown or repeated, if a GPU that MIG
    divides is visible as a whole (CUDA would choose an instance), and if instances are mixed with
    devices of another kind (a figure could be of either)."""
    if visible is None:
        chosen = list(gpus)
    else:
        chosen = [_named(word.strip(), gpus, visible) for word in visible.split(",") if gpus]
    for number, gpu in enumerate(chosen):
        if gpu in chosen[:number]:
            raise GpuError(f"{VISIBLE}={visible!r} names {gpu.uuid} twice; allowed: each GPU once")
        if gpu.instances is not None:
            raise GpuError(_undivided(gpu))
    kinds = sorted({gpu.name for gpu in chosen})
    if len(kinds) > 1 and any(gpu.is_instance for gpu in chosen):
        raise GpuError(
            f"{VISIBLE}={visible!r} names {' and '.join(kinds)}; allowed: instances of one profile"
        )
    return chosen


def _named(word: str, gpus: Sequence[Gpu], visible: str) -> Gpu:
    """Return the GPU or instance that an entry of CUDA_VISIBLE_DEVICES names."""
    if word in ("", "-1", "NoDevFiles"):
        hidden = "the GPU" if len(gpus) == 1 else f"all {len(gpus)} GPUs"
        raise GpuError(
            f"{VISIBLE}={visible!r} hides {hidden}; allowed: GPUs by number or UUID, or "
            "no such variable"
        )
    if word.isdigit() and int(word) < len(gpus):
        return gpus[int(word)]
    everything = [*gpus, *(instance for gpu in gpus for instance in gpu.instances or ())]
    like = [] if word.isdigit() else [gpu for gpu in everything if gpu.uuid.startswith(word)]
    if len(like) != 1:
        names = ", ".join([str(number) for number in range(len(gpus))])
        names += "".join(f", {instance.uuid}" for gpu in gpus for instance in gpu.instances or ())
        raise GpuError(
            f"{VISIBLE}={visible!r} names {word!r}, which {_SMI} does not list; allowed: {names}, "
            "or a UUID"
        )
    return like[0]


def _undivided(gpu: Gpu) -> str:
    if not gpu.instances:
        return (
            f"MIG is on for {gpu.name} ({gpu.uuid}), which has no instance; allowed: instances "
            f"({_SMI} mig -cgi .. -C), or no MIG ({_SMI} -mig 0)"
        )
    names = " or ".join(
        f"{VISIBLE}={instance.uuid} ({instance.name.rpartition(' ')[2]})"
        for instance in gpu.instances
    )
    return f"MIG divides {gpu.name} and no instance is named; allowed: {names}"


_DRIVER = "allowed: a driver that works"


def _require_no_gpu() -> None:
    """Raise GpuError if the driver is loaded, or NVIDIA's GPUs are on the PCI bus."""
    found = (
        [str(LOADED)] if LOADED.exists() else [*map(str, filter(_is_gpu, PCI_DEVICES.glob("*")))]
    )
    if found:
        raise GpuError(
            f"{found[0]} is a sign of NVIDIA's GPUs, and there is no {_SMI} to list them; allowed: "
            "a driver with it (in containers NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
        )


def _is_gpu(device: Path) -> bool:
    try:
        vendor, kind = (bounded.read_text(device / name).strip() for name in ("vendor", "class"))
    except OSError:
        return False
    return vendor == _VENDOR and kind.startswith(_DISPLAY)


def _failure(reason: str) -> GpuError:
    return GpuError(f"{_SMI} fails: {reason}; {_DRIVER}")


def _ask(arguments: Sequence[str], seconds: float) -> str:
    """Return the output of ``nvidia-smi``. Raises GpuError where it fails."""
    try:
        ended = programs.run([_SMI, *arguments], stdin=subprocess.DEVNULL, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise _failure(f"no answer within {seconds:g} s") from None
    except OSError as error:
        raise _failure(str(error)) from None
    if ended.returncode not in (0, _INFOROM):
        output = " ".join(f"{ended.stdout} {ended.stderr}".split())
        raise _failure(output or f"exit status {ended.returncode}")
    return ended.stdout


def _parse(text: str) -> List[Gpu]:
    """Return the GPUs in the output of ``nvidia-smi --query-gpu``.

    Raises GpuError, with the text of the output, if it lists no GPU or one that gives no values."""
    gpus, broken = [], []
    for line in filter(str.strip, text.splitlines()):
        parts = [word.strip() for word in line.split(",")]
        values = dict(zip(_FIELDS, parts))
        if line.startswith(_WARNING):
            continue
        if len(parts) < len(_FIELDS) or values["uuid"].startswith("["):
            broken.append(" ".join(line.split()))
            continue
        mebibytes = values["memory.total"]
        gpus.append(
            Gpu(
                values["name"],
                int(mebibytes) * 2**20 if mebibytes.isdigit() else None,
                _version(values["driver_version"]),
                values["uuid"],
                values["pci.bus_id"],
                _version(values["compute_cap"]),
                () if values["mig.mode.current"] == "Enabled" else None,
                state=tuple(zip(_STATE, parts[len(_FIELDS) :])),
            )
        )
    if broken or not gpus:
        raise _failure("; ".join(broken) or "it lists no GPU")
    return gpus


def _version(text: str) -> str:
    """Return a version; "" where ``nvidia-smi`` knows none."""
    return text if _VERSION.match(text) else ""


def profile_bytes(name: str) -> Optional[int]:
    """Return the nominal memory of the MIG profile in a name; None if the name has no profile."""
    profile = _PROFILE.search(name)
    return int(profile.group(1)) * 2**30 if profile else None


def _instances(gpu: Gpu, listing: str) -> Tuple[Gpu, ...]:
    """Return the instances of a GPU in the output of ``nvidia-smi -L``."""
    instances, owner = [], ""
    for line in listing.splitlines():
        whole, instance = _GPU.match(line), _INSTANCE.match(line)
        if whole:
            owner = whole.group(1)
        elif instance and owner == gpu.uuid:
            profile, uuid = instance.groups()
            own = gpu._replace(name=f"{gpu.name} MIG {profile}", uuid=uuid, is_instance=True)
            instances.append(own._replace(memory_bytes=profile_bytes(profile), instances=None))
    return tuple(instances)


def start_cuda() -> Tuple[int, str]:
    """Start CUDA; return its error code and message, or 0 and the CUDA version that the driver
    supports. Raises OSError without the driver's library. A broken driver may hang or crash this
    process."""
    driver = ctypes.CDLL(CUDA)
    number = int(driver.cuInit(0))
    if number:
        words = ctypes.c_char_p()
        driver.cuGetErrorString(number, ctypes.byref(words))
        return number, (words.value or b"").decode("utf-8", "replace")
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    return 0, f"{version.value // 1000}.{version.value % 1000 // 10}"
