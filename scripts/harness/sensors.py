"""Sensors of this machine in /proc and /sys: load, frequency, temperature, energy.

A missing source is None, and never zero.
"""

from __future__ import annotations

import glob
import os
import re
import statistics
from typing import Dict, List, Optional, Sequence

from core import limits

from harness.hardware import file_line, file_text

_TICKS = os.sysconf("SC_CLK_TCK")

#: Most cores, evenly spread, to read frequency and throttle counts of: some kernels interrupt a
#: core for that.
_MOST_CORES = 16

#: Kernel drivers whose first sensor is the processor's own.
_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")

#: Clock and energy of a rank's device.
CLOCK, ENERGY = "clock_mhz", "energy_joules"
Reading = Dict[str, Optional[float]]


class Sensors:
    """Sensors of this machine. Never raises. ``cores``: logical cores whose load counts."""

    def __init__(self, cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> None:
        self._proc = proc
        self._cores = frozenset(f"cpu{core}" for core in cores)
        chosen = sorted(cores)[:: -(-len(cores) // _MOST_CORES)]
        some = [f"{sys}/devices/system/cpu/cpu{core}" for core in chosen]
        self._frequencies = [f"{core}/cpufreq/scaling_cur_freq" for core in some]
        counts = [path for core in some for path in glob.glob(f"{core}/thermal_throttle/*e_count")]
        self._throttles = sorted(counts)
        self._temperatures = [
            f"{folder}/temp1_input"
            for folder in sorted(glob.glob(f"{sys}/class/hwmon/hwmon*"))
            if file_line(f"{folder}/name") in _PROCESSOR_SENSORS
        ]
        rapl = sorted(glob.glob(f"{sys}/class/powercap/intel-rapl:*/energy_uj"))
        counters = [_Energy(path) for path in rapl if _number(path) is not None]
        # Only packages and memory count: cores are part of packages, and packages are part of psys.
        self._energies = [each for each in counters if each.name.startswith(("package", "dram"))]
        self._has_quota = limits.cpu_limit() is not None

    def read(self) -> Reading:
        """Return one sample.

        Times and energies are sums since some moment (s, J), frequencies MHz, temperatures degrees
        Celsius. Absent or silent sources are None."""
        sample: Reading = dict(self._load())
        mhz = [value / 1000 for value in _numbers(self._frequencies)]
        sample["mhz"] = statistics.median(mhz) if mhz else None
        degrees = [value / 1000 for value in _numbers(self._temperatures)]
        sample["temperature_celsius"] = max(degrees, default=None)
        counts = _numbers(self._throttles)
        sample["throttle_events"] = sum(counts) if counts else None
        periods = limits.throttled_periods() if self._has_quota else None
        sample["throttled_periods"] = periods
        sample.update((f"{energy.name}_joules", energy.joules()) for energy in self._energies)
        return sample

    def clock_and_energy(self) -> Reading:
        """Return the clock of the cores, and the energy of whole processors since some moment."""
        sample = self.read()
        joules = [value for name, value in sample.items() if name.endswith("_joules")]
        present = [value for value in joules if value is not None]
        energy = sum(present) if present and len(present) == len(joules) else None
        return {CLOCK: sample["mhz"] or self._clock_of_cpuinfo(), ENERGY: energy}

    def _clock_of_cpuinfo(self) -> Optional[float]:
        """Return the clock of /proc/cpuinfo, for kernels that do not scale frequency."""
        entry = r"^processor\s*:\s*(\d+)$.*?^cpu MHz\s*:\s*([\d.]+)$"
        entries = re.findall(entry, file_text(f"{self._proc}/cpuinfo") or "", re.M | re.S)
        clocks = [float(mhz) for core, mhz in entries if f"cpu{core}" in self._cores]
        return statistics.median(clocks) if clocks else None

    def _load(self) -> Dict[str, Optional[float]]:
        """Return the seconds that processes kept cores busy and the seconds that a hypervisor took,
        for our cores and for all.

        Interrupts are excluded, because interrupts for the run's own messages cannot be
        distinguished from others."""
        names = ("busy", "stolen", "machine_busy", "machine_stolen")
        text = file_text(f"{self._proc}/stat")
        if text is None:
            return {f"{name}_seconds": None for name in names}
        busy = stolen = machine_busy = machine_stolen = 0
        for line in text.splitlines():
            if not line.startswith("cpu"):
                break
            name, user, nice, system, _, _, _, _, steal = line.split()[:9]
            used = int(user) + int(nice) + int(system)
            if name == "cpu":
                machine_busy, machine_stolen = used, int(steal)
            elif name in self._cores:
                busy, stolen = busy + used, stolen + int(steal)
        counted = (busy, stolen, machine_busy, machine_stolen)
        return {f"{name}_seconds": value / _TICKS for name, value in zip(names, counted)}


class _Energy:
    """RAPL counter in the file ``path``, which continues where the hardware's wraps around to
    zero."""

    def __init__(self, path: str) -> None:
        folder = os.path.dirname(path)
        name = file_line(os.path.join(folder, "name")) or ""
        self.name = name if "-" in name else f"{name}-{path.split(':')[1]}"
        self._path = path
        self._range = _number(os.path.join(folder, "max_energy_range_uj")) or 0.0
        self._last = self._wrapped = 0.0

    def joules(self) -> Optional[float]:
        now = _number(self._path)
        if now is None:
            return None
        if now < self._last:
            self._wrapped += self._range
        self._last = now
        return (self._wrapped + now) / 1e6


def _number(path: str) -> Optional[float]:
    """Return the number in a file; None where it holds none or cannot be read."""
    try:
        return float(file_text(path) or "")
    except ValueError:
        return None


def _numbers(paths: Sequence[str]) -> List[float]:
    values = map(_number, paths)
    return [value for value in values if value is not None]
