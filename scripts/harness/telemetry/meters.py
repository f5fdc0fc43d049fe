"""Clock and energy of a rank's device: of a GPU as NVML reports them, of a CPU as the kernel does,
for the cores of the rank and for whole processors."""

from __future__ import annotations

import re
import statistics
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from harness.machine.sources import file_text
from harness.telemetry import nvml
from harness.telemetry.sensors import Sensors

CLOCK, ENERGY = "clock_mhz", "energy_joules"
QUANTITIES = (CLOCK, ENERGY)

Reading = Dict[str, Optional[float]]


class CpuMeter:
    """Readings of QUANTITIES of a CPU: the current clock, and the energy since some moment.

    A quantity is None where it is ``absent``, which has the reason, or gave no answer."""

    def __init__(self, cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> None:
        self._sensors = Sensors(cores, proc, sys)
        self._cores, self._cpuinfo = frozenset(cores), f"{proc}/cpuinfo"
        absent = self._sensors.absent
        reasons = {CLOCK: absent.get("frequency", ""), ENERGY: absent.get("processor energy", "")}
        self.absent = {name: reasons[name] for name, value in self.read().items() if value is None}

    def read(self) -> Reading:
        sample = self._sensors.read()
        joules = [value for name, value in sample.items() if name.endswith("_joules")]
        present = [value for value in joules if value is not None]
        return {
            CLOCK: sample["mhz"] or self._clock_of_cpuinfo(),
            ENERGY: sum(present) if present and len(present) == len(joules) else None,
        }

    def _clock_of_cpuinfo(self) -> Optional[float]:
        """Return the clock of /proc/cpuinfo, for kernels that do not scale frequency."""
        entry = r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$"
        entries = re.findall(entry, file_text(self._cpuinfo) or "", re.M | re.S)
        clocks = [float(mhz) for core, mhz in entries if int(core) in self._cores]
        return statistics.median(clocks) if clocks else None


class GpuMeter:
    """Clock and energy of GPU number ``index`` of a run, read through NVML. Raises
    :class:`harness.telemetry.nvml.Unwatchable`."""

    def __init__(self, library: Any, variables: Mapping[str, str], index: int) -> None:
        self._gpus = nvml.Gpus(library, variables, index + 1)
        self._names = {CLOCK: f"gpu-{index}_sm_mhz", ENERGY: f"gpu-{index}_joules"}
        self.read()
        absent = {name.replace(" ", "_"): why for name, why in self._gpus.absent.items()}
        self.absent = {name: absent[own] for name, own in self._names.items() if own in absent}

    def read(self) -> Reading:
        sample = self._gpus.read(set())
        return {name: sample[own] for name, own in self._names.items()}


Meter = Union[CpuMeter, GpuMeter]
