"""Sensors of this machine in /proc and /sys: load, frequency, temperature, memory, energy.

A missing source is absent, with the reason, and never zero.
"""

from __future__ import annotations

import glob
import os
import re
import statistics
from typing import Dict, List, Optional, Sequence

from core import control_groups

from harness.machine.sources import file_line, file_number, file_text

_TICKS = os.sysconf("SC_CLK_TCK")

#: Most cores, evenly spread, to read frequency and throttle counts of: some kernels interrupt a
#: core for that.
_MOST_CORES = 16

#: Kernel drivers whose first sensor is the processor's own.
_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")

Reading = Dict[str, Optional[float]]


class Sensors:
    """Sensors of this machine. Never raises.

    ``cores``: logical cores whose load counts. ``absent``: the reason for each missing source."""

    def __init__(self, cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> None:
        self.absent: Dict[str, str] = {}
        self._proc = proc
        self._cores = frozenset(f"cpu{core}" for core in cores)
        chosen = sorted(cores)[:: -(-len(cores) // _MOST_CORES)]
        some = [f"{sys}/devices/system/cpu/cpu{core}" for core in chosen]
        for name, path in {"load": "stat", "memory": "meminfo", "swap": "vmstat"}.items():
            self._readable(name, [f"{proc}/{path}"])
        frequencies = [f"{core}/cpufreq/scaling_cur_freq" for core in some]
        self._frequencies = self._readable("frequency", frequencies)
        counts = [path for core in some for path in glob.glob(f"{core}/thermal_throttle/*e_count")]
        self._throttles = self._readable("throttling", sorted(counts))
        own = [
            f"{folder}/temp1_input"
            for folder in sorted(glob.glob(f"{sys}/class/hwmon/hwmon*"))
            if file_line(f"{folder}/name") in _PROCESSOR_SENSORS
        ]
        self._temperatures = self._readable("temperature", own)
        rapl = sorted(glob.glob(f"{sys}/class/powercap/intel-rapl:*/energy_uj"))
        counters = [_Energy(path) for path in self._readable("processor energy", rapl)]
        # Cores are part of their package, and packages of psys.
        self._energies = [each for each in counters if each.name.startswith(("package", "dram"))]
        self._has_quota = control_groups.cpu_limit() is not None

    def _readable(self, name: str, paths: Sequence[str]) -> List[str]:
        """Return the files that can be read; ``absent`` gets the reason where none can."""
        readable, why = [], "this machine has none"
        for path in paths:
            try:
                with open(path, "rb") as file:
                    file.read()
                readable.append(path)
            except OSError as error:
                why = f"{path}: {error.strerror}"
        if not readable:
            self.absent[name] = why
        return readable

    def read(self) -> Reading:
        """Return one sample.

        Times and energies are sums since some moment (s, J), frequencies MHz, temperatures degrees
        Celsius, memory bytes. Absent or silent sources are None."""
        sample: Reading = dict(self._load())
        mhz = [value / 1000 for value in _numbers(self._frequencies)]
        sample["mhz"] = statistics.median(mhz) if mhz else None
        degrees = [value / 1000 for value in _numbers(self._temperatures)]
        sample["temperature_celsius"] = max(degrees, default=None)
        counts = _numbers(self._throttles)
        sample["throttle_events"] = sum(counts) if counts else None
        periods = control_groups.throttled_periods() if self._has_quota else None
        sample["throttled_periods"] = periods
        free = self._after("meminfo", "MemAvailable")
        sample["memory_available_bytes"] = None if free is None else 1024 * free
        into, out = self._after("vmstat", "pswpin"), self._after("vmstat", "pswpout")
        sample["swapped_pages"] = None if into is None or out is None else into + out
        sample.update((f"{energy.name}_joules", energy.joules()) for energy in self._energies)
        return sample

    def memory_bytes(self) -> Optional[int]:
        """Return the machine's memory in bytes."""
        total = self._after("meminfo", "MemTotal")
        return None if total is None else int(total) * 1024

    def _after(self, path: str, word: str) -> Optional[float]:
        """Return the number after the first ``word`` in a file of /proc."""
        match = re.search(rf"\b{word}[:\s]\s*(\d+)", file_text(f"{self._proc}/{path}") or "")
        return float(match.group(1)) if match else None

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
        self._range = file_number(os.path.join(folder, "max_energy_range_uj")) or 0.0
        self._last = self._wrapped = 0.0

    def joules(self) -> Optional[float]:
        now = file_number(self._path)
        if now is None:
            return None
        if now < self._last:
            self._wrapped += self._range
        self._last = now
        return (self._wrapped + now) / 1e6


def _numbers(paths: Sequence[str]) -> List[float]:
    values = map(file_number, paths)
    return [value for value in values if value is not None]
