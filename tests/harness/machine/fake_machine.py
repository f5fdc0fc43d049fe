"""A machine made of files, and a management library without a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
#: A GPU of :class:`FakeNvml`, and the variables that make the harness find it.
GPU = {
    "uuid": "GPU-a",
    "sm": 1410,
    "temperature": 71,
    "reasons": 0x4,
    "ecc": 1,
    "millijoules": 5_250,
    "processes": [],
}
VARIABLES = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def stat(cores: Mapping[int, tuple[float, float]], interrupts: float = 0.0) -> str:
    """Return /proc/stat with the busy and stolen seconds of each core."""
    both = [sum(column) for column in zip(*cores.values(), strict=True)]
    rows = {"cpu": both, **{f"cpu{core}": seconds for core, seconds in cores.items()}}
    lines = []
    for name, (busy, stolen) in rows.items():
        half, rest = round(busy * TICKS / 2), round(busy * TICKS) - round(busy * TICKS / 2)
        numbers = [half, 0, rest, 7, 7, round(interrupts * TICKS), 0, round(stolen * TICKS), 0, 0]
        lines.append(" ".join([name, *map(str, numbers)]))
    return "\n".join([*lines, "intr 1 2 3", "processes 9"]) + "\n"


def machine(root: Path) -> tuple[str, str]:
    """Write all sources of a machine with two cores; return the folders proc and sys."""
    write(
        root,
        {
            "proc/stat": stat({0: (10.0, 1.0), 1: (20.0, 3.0)}, interrupts=50.0),
            "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1000000\n",
            "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3000000\n",
            "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "2\n",
            "sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "5\n",
            "sys/class/hwmon/hwmon0/name": "nvme\n",
            "sys/class/hwmon/hwmon0/temp1_input": "99000\n",
            "sys/class/hwmon/hwmon1/name": "coretemp\n",
            "sys/class/hwmon/hwmon1/temp1_input": "61500\n",
            "sys/class/powercap/intel-rapl:0/name": "package-0\n",
            "sys/class/powercap/intel-rapl:0/energy_uj": "5000000\n",
            "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "9000000\n",
            "sys/class/powercap/intel-rapl:0:0/name": "core\n",
            "sys/class/powercap/intel-rapl:0:0/energy_uj": "4000000\n",
            "sys/class/powercap/intel-rapl:0:0/max_energy_range_uj": "9000000\n",
            "sys/class/powercap/intel-rapl:0:1/name": "dram\n",
            "sys/class/powercap/intel-rapl:0:1/energy_uj": "1000000\n",
            "sys/class/powercap/intel-rapl:0:1/max_energy_range_uj": "9000000\n",
        },
    )
    return str(root / "proc"), str(root / "sys")


def process(
    proc: str, number: int, parent: int, own: float, children: float = 0.0, state: str = "S"
) -> None:
    message = [state, str(parent), *["0"] * 9, str(round(own * TICKS)), "0"]
    message += [str(round(children * TICKS)), "0", *["0"] * 30]
    write(Path(proc, str(number)), {"stat": f"{number} (a ) name) {' '.join(message)}\n"})


class FakeNvml(SimpleNamespace):
    """Double of ``pynvml`` whose devices are dictionaries; a missing key is unsupported."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = "sm", "memory", 0

    class NVMLError(Exception):
        pass

    def __init__(self, *devices: dict[str, Any]) -> None:
        super().__init__(devices=devices, asked=[])

    def _get(self, device: dict[str, Any], key: str) -> Any:
        self.asked.append(key)
        if key not in device:
            raise self.NVMLError("Not Supported")
        return device[key]

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int:
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> dict[str, Any]:
        return self.devices[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> dict[str, Any]:
        return next(device for device in self.devices if device["uuid"] == uuid)

    def nvmlDeviceGetName(self, device: dict[str, Any]) -> bytes:
        return b"Example GPU"

    def nvmlDeviceGetUUID(self, device: dict[str, Any]) -> str:
        return device["uuid"]

    def nvmlDeviceGetClockInfo(self, device: dict[str, Any], clock: str) -> int:
        return self._get(device, clock)

    def nvmlDeviceGetTemperature(self, device: dict[str, Any], sensor: int) -> int:
        return self._get(device, "temperature")

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, device: dict[str, Any]) -> int:
        return self._get(device, "reasons")

    def nvmlDeviceGetEccMode(self, device: dict[str, Any]) -> list[int]:
        return [self._get(device, "ecc"), 1]

    def nvmlDeviceGetTotalEnergyConsumption(self, device: dict[str, Any]) -> int:
        return self._get(device, "millijoules")

    def nvmlDeviceGetComputeRunningProcesses(self, device: dict[str, Any]) -> list[Any]:
        return [SimpleNamespace(pid=number) for number in self._get(device, "processes")]

    def nvmlDeviceGetCurrPcieLinkGeneration(self, device: dict[str, Any]) -> int:
        return self._get(device, "generation")

    def nvmlDeviceGetCurrPcieLinkWidth(self, device: dict[str, Any]) -> int:
        return self._get(device, "lanes")
