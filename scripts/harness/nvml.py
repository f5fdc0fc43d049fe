"""Readings of a run's GPUs from NVIDIA's management library.

The package nvidia-ml-py (module ``pynvml``) is part of the environments for GPUs. Where it is
missing, in a user's interpreter, GPUs are not watched and the record says so.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Optional, Set

from harness.sensors import CLOCK, ENERGY, Reading

#: Every bit of nvmlDeviceGetCurrentClocksThrottleReasons, by NVIDIA's names.
THROTTLE_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
    0x200: "board_limit",
    0x400: "reliability",
}

#: Units of a GPU's link to the host: the generation of PCI Express in use, and its lanes.
LINK_UNITS = {"pcie_generation": "generation", "pcie_lanes": "lanes"}


class Unwatchable(Exception):
    """Raised where devices cannot be watched; the message has the reason."""


def reasons(bits: int) -> List[str]:
    """Return the names of all set bits; ``bit_N`` for an unknown one."""
    names = []
    for position in range(bits.bit_length()):
        if bits >> position & 1:
            names.append(THROTTLE_REASONS.get(1 << position, f"bit_{position}"))
    return names


def chosen(variables: Mapping[str, str], count: int, devices: int) -> List[str]:
    """Return the first ``devices`` GPUs that a run with these variables sees, by index or uuid.

    ``count``: GPUs of this machine. Raises :class:`Unwatchable` where CUDA's indices may differ
    from the library's."""
    if variables.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise Unwatchable("CUDA_DEVICE_ORDER is not PCI_BUS_ID, so devices cannot be told apart")
    if "CUDA_VISIBLE_DEVICES" not in variables:
        return [str(index) for index in range(count)][:devices]
    identifiers = [word.strip() for word in variables["CUDA_VISIBLE_DEVICES"].split(",")][:devices]
    for word in identifiers:
        if not ((word.isdigit() and int(word) < count) or word.startswith("GPU-")):
            raise Unwatchable(f"the entry {word!r} of CUDA_VISIBLE_DEVICES is not watched")
    return identifiers


class Gpus:
    """GPUs of one run. Raises :class:`Unwatchable`.

    ``library``: the module ``pynvml``. ``facts``: name, uuid and whether the memory corrects errors
    (None where the device does not report it) of each."""

    def __init__(self, library: Any, variables: Mapping[str, str], devices: int) -> None:
        self.library = library
        try:
            library.nvmlInit()
            names = chosen(variables, library.nvmlDeviceGetCount(), devices)
            self.handles = [self._handle(name) for name in names]
            self.facts: List[Dict[str, Any]] = [
                {"name": _text(library.nvmlDeviceGetName(handle)),
                 "uuid": _text(library.nvmlDeviceGetUUID(handle)),
                 "ecc": self._asked(self._ecc, handle)}
                for handle in self.handles
            ]  # fmt: skip
        except library.NVMLError as error:
            raise Unwatchable(f"NVML: {error}") from error
        self._before: List[Optional[Set[int]]] = [None] * len(self.handles)

    def _handle(self, name: str) -> Any:
        if name.isdigit():
            return self.library.nvmlDeviceGetHandleByIndex(int(name))
        return self.library.nvmlDeviceGetHandleByUUID(name)

    def _ecc(self, device: Any) -> bool:
        return bool(self.library.nvmlDeviceGetEccMode(device)[0])

    def read(self, ours: Set[int]) -> Dict[str, Any]:
        """Return one sample of all devices; ``ours``: the run's processes.

        The clock is in MHz, temperature in degrees Celsius, energy in J since some moment. Throttle
        reasons are bits. Processes of others are listed by id."""
        n = self.library
        quantities: Dict[str, Callable[[Any], Any]] = {
            "sm_mhz": lambda device: n.nvmlDeviceGetClockInfo(device, n.NVML_CLOCK_SM),
            "temperature_celsius": lambda device: n.nvmlDeviceGetTemperature(
                device, n.NVML_TEMPERATURE_GPU
            ),
            "throttle_reasons": n.nvmlDeviceGetCurrentClocksThrottleReasons,
            "joules": lambda device: n.nvmlDeviceGetTotalEnergyConsumption(device) / 1000,
        }
        sample: Dict[str, Any] = {}
        for index, device in enumerate(self.handles):
            for name, ask in quantities.items():
                sample[f"gpu-{index}_{name}"] = self._asked(ask, device)
            sample[f"gpu-{index}_other_processes"] = self._asked(self._others, index, device, ours)
        return sample

    def clock_and_energy(self, index: int) -> Reading:
        """Return the clock of the run's GPU ``index``, and its energy since some moment."""
        sample = self.read(set())
        return {CLOCK: sample[f"gpu-{index}_sm_mhz"], ENERGY: sample[f"gpu-{index}_joules"]}

    def read_link(self) -> Dict[str, Any]:
        """Return each quantity of LINK_UNITS of the last device; None for one that is absent."""
        n = self.library
        asked = (n.nvmlDeviceGetCurrPcieLinkGeneration, n.nvmlDeviceGetCurrPcieLinkWidth)
        return {name: self._asked(ask, self.handles[-1]) for name, ask in zip(LINK_UNITS, asked)}

    def _asked(self, ask: Callable[..., Any], *arguments: Any) -> Any:
        """Return a quantity; None where the device gives no answer."""
        try:
            return ask(*arguments)
        except self.library.NVMLError:
            return None

    def _others(self, index: int, device: Any, ours: Set[int]) -> List[int]:
        """Return the ids of foreign processes that hold a context on the device.

        In a container, the library may report process ids of the host. If it reports one of ours,
        all others are foreign; else only processes that existed before our ranks are foreign."""
        running = self.library.nvmlDeviceGetComputeRunningProcesses(device)
        processes = {int(process.pid) for process in running}
        before = self._before[index]
        if before is None:
            before = self._before[index] = processes - ours
        return sorted(processes - ours if processes & ours else processes & before)


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def find(variables: Mapping[str, str], devices: int) -> Gpus:
    """Return the GPUs of a run of ``devices`` ranks with these variables on this node. Raises
    :class:`Unwatchable`."""
    try:
        import pynvml
    except ImportError as error:
        raise Unwatchable("the package nvidia-ml-py is not in this environment") from error
    return Gpus(pynvml, variables, devices)
