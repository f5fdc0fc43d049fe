"""Clock, energy and memory errors of a rank's device.

NVML reports them for a GPU, the kernel for a CPU: the clock of the cores, the energy of whole
processors, and the errors of all memory.
"""

from __future__ import annotations

import glob
import os
import re
import statistics
from typing import Any, Dict, Mapping, Optional, Sequence

from harness.machine.sources import file_text
from harness.telemetry import nvml
from harness.telemetry.sensors import Sensors

CLOCK, ENERGY, CORRECTED, UNCORRECTED = (
    "clock_mhz", "energy_joules", "corrected_errors", "uncorrected_errors",
)  # fmt: skip
QUANTITIES = (CLOCK, ENERGY, CORRECTED, UNCORRECTED)
#: Error counters of a memory controller in EDAC.
_EDAC = {CORRECTED: "ce_count", UNCORRECTED: "ue_count"}

Reading = Dict[str, Optional[float]]


class Meter:
    """Readings of QUANTITIES: the current clock, and sums since some moment.

    A quantity is None where it is ``absent``, which has the reason, or gave no answer."""

    absent: Dict[str, str]

    def read(self) -> Reading:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class CpuMeter(Meter):
    def __init__(self, cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> None:
        self._sensors = Sensors(cores, proc, sys)
        self._cores, self._proc = frozenset(cores), proc
        self._controllers = sorted(glob.glob(f"{sys}/devices/system/edac/mc/mc*"))
        lacking = {name for name, value in self.read().items() if value is None}
        absent = self._sensors.absent
        reasons = {
            CLOCK: absent.get("frequency", ""),
            ENERGY: absent.get("processor energy", ""),
            **dict.fromkeys(_EDAC, f"no memory controller in {sys}/devices/system/edac"),
        }
        self.absent = {name: reasons[name] for name in QUANTITIES if name in lacking}

    def read(self) -> Reading:
        sample = self._sensors.read()
        joules = [value for name, value in sample.items() if name.endswith("_joules")]
        present = [value for value in joules if value is not None]
        return {
            CLOCK: sample["mhz_median"] or self._clock_of_cpuinfo(),
            ENERGY: sum(present) if present and len(present) == len(joules) else None,
            **{name: self._counted(file) for name, file in _EDAC.items()},
        }

    def _clock_of_cpuinfo(self) -> Optional[float]:
        """Return the clock of /proc/cpuinfo, for kernels that do not scale frequency."""
        text = file_text(f"{self._proc}/cpuinfo") or ""
        entries = re.findall(
            r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$", text, re.M | re.S
        )
        clocks = [float(mhz) for core, mhz in entries if int(core) in self._cores]
        return statistics.median(clocks) if clocks else None

    def _counted(self, file: str) -> Optional[float]:
        try:
            return (
                sum(_number(os.path.join(controller, file)) for controller in self._controllers)
                if (self._controllers)
                else None
            )
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        self._sensors.close()


def _number(path: str) -> float:
    with open(path, encoding="utf-8") as file:
        return float(file.read())


class GpuMeter(Meter):
    """Meter of GPU number ``index`` of a run. Raises
    :class:`harness.telemetry.nvml.Unwatchable`."""

    def __init__(self, library: Any, variables: Mapping[str, str], index: int) -> None:
        self._gpus = nvml.Gpus(library, variables, index + 1)
        self._names = {
            CLOCK: f"gpu-{index}_sm_mhz",
            ENERGY: f"gpu-{index}_joules",
            CORRECTED: f"gpu-{index}_corrected_errors",
            UNCORRECTED: f"gpu-{index}_uncorrected_errors",
        }
        self.read()
        absent = {name.replace(" ", "_"): why for name, why in self._gpus.absent.items()}
        self.absent = {name: absent[own] for name, own in self._names.items() if own in absent}

    def read(self) -> Reading:
        sample = self._gpus.read(set())
        return {name: sample[own] for name, own in self._names.items()}

    def close(self) -> None:
        self._gpus.close()
