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

from harness.machine.sources import file_line

_TICKS = os.sysconf("SC_CLK_TCK")

#: Most cores, evenly spread, to read frequency and throttle counts of: some kernels interrupt a
#: core for that.
_MOST_CORES = 16

#: Kernel drivers whose first sensor is the processor's own.
_PROCESSOR_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
_PROCESSOR_ZONE = re.compile(r"cpu|pkg|soc", re.IGNORECASE)

Reading = Dict[str, Optional[float]]


class _File:
    """Kernel file that is kept open; reading it from the start gives a new value."""

    def __init__(self, path: str) -> None:
        """Open the file. Raises OSError where it is missing or may not be read."""
        self._file = os.open(path, os.O_RDONLY)
        try:
            self.text()
        except OSError:
            os.close(self._file)
            raise

    def text(self) -> str:
        """Return the file's text. Raises OSError."""
        parts: List[bytes] = []
        offset = 0
        while True:
            part = os.pread(self._file, 65536, offset)
            if not part:
                return b"".join(parts).decode("ascii", "replace")
            parts.append(part)
            offset += len(part)

    def number(self) -> Optional[float]:
        """Return the file's number; None where it holds none at the moment."""
        try:
            # One read: at a second, for the end, the kernel would ask the sensor once more.
            return float(os.pread(self._file, 64, 0))
        except (OSError, ValueError):
            return None

    def after(self, word: str) -> Optional[float]:
        """Return the number after the first ``word`` (and ``:``, ``=`` or blanks)."""
        try:
            match = re.search(rf"\b{word}[:=\s]\s*(\d+)", self.text())
        except OSError:
            return None
        return float(match.group(1)) if match else None

    def close(self) -> None:
        os.close(self._file)


class _Energy:
    """RAPL counter in joules that continues where the hardware's wraps around to zero."""

    def __init__(self, folder: str) -> None:
        """Open the counter. Raises OSError or ValueError."""
        self._file = _File(os.path.join(folder, "energy_uj"))
        with open(os.path.join(folder, "max_energy_range_uj"), encoding="utf-8") as file:
            self._range = float(file.read())
        self._last = 0.0
        self._wrapped = 0.0

    def joules(self) -> Optional[float]:
        now = self._file.number()
        if now is None:
            return None
        if now < self._last:
            self._wrapped += self._range
        self._last = now
        return (self._wrapped + now) / 1e6

    def close(self) -> None:
        self._file.close()


def _spread(cores: Sequence[int]) -> List[int]:
    step = -(-len(cores) // _MOST_CORES)
    return list(cores[::step])


class Sensors:
    """Sensors of this machine. Never raises.

    ``cores``: logical cores whose load counts. ``absent``: the reason for each missing source."""

    def __init__(self, cores: Sequence[int], proc: str = "/proc", sys: str = "/sys") -> None:
        self.absent: Dict[str, str] = {}
        self._cores = frozenset(f"cpu{core}" for core in cores)
        self._opened: List[_File] = []
        self._stat = self._open("load", f"{proc}/stat")
        self._memory = self._open("memory", f"{proc}/meminfo")
        self._paging = self._open("swap", f"{proc}/vmstat")
        self._pressure = self._open("pressure", f"{proc}/pressure/cpu")
        folder = f"{sys}/devices/system/cpu/cpu"
        some = _spread(sorted(cores))
        self._frequencies = self._many(
            "frequency", [f"{folder}{core}/cpufreq/scaling_cur_freq" for core in some]
        )
        self._throttles = self._many(
            "throttling",
            [
                f"{folder}{core}/thermal_throttle/{level}_throttle_count"
                for core in some
                for level in ("core", "package")
            ],
        )
        self._temperatures = self._many("temperature", _processor_sensors(sys))
        self._energies = self._rapl(sys)
        self._has_quota = control_groups.cpu_limit() is not None

    def _open(self, name: str, path: str) -> Optional[_File]:
        opened = self._many(name, [path])
        return opened[0] if opened else None

    def _many(self, name: str, paths: Sequence[str]) -> List[_File]:
        """Return the files that can be read; ``absent`` gets the reason where none can."""
        opened = []
        why = "this machine has none"
        for path in paths:
            try:
                opened.append(_File(path))
            except OSError as error:
                why = f"{path}: {error.strerror}"
        if not opened:
            self.absent[name] = why
        self._opened += opened
        return opened

    def _rapl(self, sys: str) -> Dict[str, _Energy]:
        """Return the counters of packages and memory. Cores are part of their package, and packages
        of psys."""
        counters: Dict[str, _Energy] = {}
        why = "this machine has no RAPL counters"
        for folder in sorted(glob.glob(f"{sys}/class/powercap/intel-rapl:*")):
            name = file_line(os.path.join(folder, "name")) or ""
            number = os.path.basename(folder).split(":")[1]
            if name.partition("-")[0] not in ("package", "dram"):
                continue
            try:
                counters[name if "-" in name else f"{name}-{number}"] = _Energy(folder)
            except (OSError, ValueError) as error:
                why = f"{folder}/energy_uj: {getattr(error, 'strerror', None) or error}"
        if not counters:
            self.absent["processor energy"] = why
        return counters

    def read(self) -> Reading:
        """Return one sample.

        Times and energies are sums since some moment (s, J), frequencies MHz, temperatures degrees
        Celsius, memory bytes. Absent or silent sources are None."""
        sample: Reading = dict(self._load())
        pressure = self._pressure.after("total") if self._pressure else None
        sample["waiting_seconds"] = None if pressure is None else pressure / 1e6
        mhz = [value / 1000 for value in _numbers(self._frequencies)]
        sample["mhz_min"] = min(mhz, default=None)
        sample["mhz_median"] = statistics.median(mhz) if mhz else None
        sample["mhz_max"] = max(mhz, default=None)
        degrees = [value / 1000 for value in _numbers(self._temperatures)]
        sample["temperature_celsius"] = max(degrees, default=None)
        counts = _numbers(self._throttles)
        sample["throttle_events"] = sum(counts) if counts else None
        sample["throttled_periods"] = (
            control_groups.throttled_periods() if self._has_quota else None
        )
        free = self._memory.after("MemAvailable") if self._memory else None
        sample["memory_available_bytes"] = None if free is None else 1024 * free
        sample["swapped_pages"] = self._swapped()
        for name, energy in self._energies.items():
            sample[f"{name}_joules"] = energy.joules()
        return sample

    def memory_bytes(self) -> Optional[int]:
        """Return the machine's memory in bytes."""
        total = self._memory.after("MemTotal") if self._memory else None
        return None if total is None else int(total) * 1024

    def _load(self) -> Dict[str, Optional[float]]:
        """Return the seconds that processes kept cores busy, and that a hypervisor took, of our
        cores and of all.

        Interrupts are excluded: those of the run's own messages are no process's time, and cannot
        be told from others'."""
        names = ("busy", "stolen", "machine_busy", "machine_stolen")
        if self._stat is None:
            return {f"{name}_seconds": None for name in names}
        busy = stolen = machine_busy = machine_stolen = 0
        for line in self._stat.text().splitlines():
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

    def _swapped(self) -> Optional[float]:
        if self._paging is None:
            return None
        into, out = self._paging.after("pswpin"), self._paging.after("pswpout")
        return None if into is None or out is None else into + out

    def close(self) -> None:
        """Close all files."""
        for file in self._opened:
            file.close()
        for energy in self._energies.values():
            energy.close()


def _numbers(files: Sequence[_File]) -> List[float]:
    values = [file.number() for file in files]
    return [value for value in values if value is not None]


def _processor_sensors(sys: str) -> List[str]:
    """Return files with a temperature of the processor, without those of disks and network
    cards."""
    paths = []
    for folder in sorted(glob.glob(f"{sys}/class/hwmon/hwmon*")):
        if file_line(os.path.join(folder, "name")) in _PROCESSOR_SENSORS:
            paths += sorted(glob.glob(os.path.join(folder, "temp1_input")))
    if not paths:
        for folder in sorted(glob.glob(f"{sys}/class/thermal/thermal_zone*")):
            if _PROCESSOR_ZONE.search(file_line(os.path.join(folder, "type")) or ""):
                paths.append(os.path.join(folder, "temp"))
    return paths
