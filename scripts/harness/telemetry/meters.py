"""Clock and energy of a rank's device: of a GPU as NVML reports them, of a CPU as the kernel does,
for the cores of the rank and for whole processors."""

from __future__ import annotations

import re
import statistics
from typing import Callable, Dict, Optional, Sequence

from harness.machine.sources import file_text
from harness.telemetry import nvml
from harness.telemetry.sensors import Sensors

CLOCK, ENERGY = "clock_mhz", "energy_joules"

#: Function that returns the current clock, and the energy since some moment; None where a meter
#: gave no answer.
Meter = Callable[[], Dict[str, Optional[float]]]


def cpu_meter(cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> Meter:
    """Return the meter of these cores."""
    sensors = Sensors(cores, proc, sys)

    def clock_of_cpuinfo() -> Optional[float]:
        """Return the clock of /proc/cpuinfo, for kernels that do not scale frequency."""
        entry = r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$"
        entries = re.findall(entry, file_text(f"{proc}/cpuinfo") or "", re.M | re.S)
        clocks = [float(mhz) for core, mhz in entries if int(core) in cores]
        return statistics.median(clocks) if clocks else None

    def read() -> Dict[str, Optional[float]]:
        sample = sensors.read()
        joules = [value for name, value in sample.items() if name.endswith("_joules")]
        present = [value for value in joules if value is not None]
        energy = sum(present) if present and len(present) == len(joules) else None
        return {CLOCK: sample["mhz"] or clock_of_cpuinfo(), ENERGY: energy}

    return read


def gpu_meter(gpus: nvml.Gpus, index: int) -> Meter:
    """Return the meter of GPU number ``index`` of a run."""

    def read() -> Dict[str, Optional[float]]:
        sample = gpus.read(set())
        return {CLOCK: sample[f"gpu-{index}_sm_mhz"], ENERGY: sample[f"gpu-{index}_joules"]}

    return read
