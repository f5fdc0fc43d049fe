"""Clock and energy of a rank's device: of a GPU as NVML reports them, of a CPU as the kernel does,
for the cores of the rank and for whole processors."""

from __future__ import annotations

import re
import statistics
from typing import Callable, Dict, Mapping, Optional, Sequence

from harness.machine.sources import file_text
from harness.telemetry import nvml
from harness.telemetry.sensors import Sensors

CLOCK, ENERGY = "clock_mhz", "energy_joules"
QUANTITIES = (CLOCK, ENERGY)

Reading = Dict[str, Optional[float]]


class Meter:
    """Readings of QUANTITIES: the current clock, and the energy since some moment.

    ``read``: returns them, None for one that gave no answer. ``absent``: ``reasons`` of those that
    the first reading lacks."""

    def __init__(self, read: Callable[[], Reading], reasons: Mapping[str, str]) -> None:
        self.read = read
        self.absent = {name: reasons[name] for name, value in read().items() if value is None}


def cpu_meter(cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> Meter:
    """Return the meter of these cores."""
    sensors = Sensors(cores, proc, sys)

    def clock_of_cpuinfo() -> Optional[float]:
        """Return the clock of /proc/cpuinfo, for kernels that do not scale frequency."""
        entry = r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$"
        entries = re.findall(entry, file_text(f"{proc}/cpuinfo") or "", re.M | re.S)
        clocks = [float(mhz) for core, mhz in entries if int(core) in cores]
        return statistics.median(clocks) if clocks else None

    def read() -> Reading:
        sample = sensors.read()
        joules = [value for name, value in sample.items() if name.endswith("_joules")]
        present = [value for value in joules if value is not None]
        energy = sum(present) if present and len(present) == len(joules) else None
        return {CLOCK: sample["mhz"] or clock_of_cpuinfo(), ENERGY: energy}

    reasons = (sensors.absent.get(name, "") for name in ("frequency", "processor energy"))
    return Meter(read, dict(zip(QUANTITIES, reasons)))


def gpu_meter(gpus: nvml.Gpus, index: int) -> Meter:
    """Return the meter of GPU number ``index`` of a run."""

    def read() -> Reading:
        sample = gpus.read(set())
        return {CLOCK: sample[f"gpu-{index}_sm_mhz"], ENERGY: sample[f"gpu-{index}_joules"]}

    read()  # the first reading shows what is absent
    reasons = (gpus.absent.get(f"gpu-{index} {name}", "") for name in ("sm_mhz", "joules"))
    return Meter(read, dict(zip(QUANTITIES, reasons)))
