"""Watch the machine while ranks are timed, and summarize the samples of the timed region.

A thread of the launcher, which otherwise sleeps, takes a sample every half second: about 20 small
files, and 5 calls for each GPU. It is a thread because a hanging sensor must not keep the launcher
from the time limit. It runs on a core that the run does not use, where there is one. Load and
energy are counters, so nothing need happen at the ends of the timed region: they are interpolated.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from harness import nvml
from harness.hardware import siblings
from harness.processes.descendants import OwnTime
from harness.sensors import Sensors

INTERVAL_SECONDS = 0.5

#: Beyond this many samples every other one is dropped and the interval doubles.
MOST_SAMPLES = 1000

#: Seconds that ranks wait for the first sample, and the record for the last.
PATIENCE_SECONDS = 10.0


_JOULES = "_joules"

Sample = Dict[str, Any]
Window = Tuple[float, float]


class Watcher:
    """Samples from entering the context until leaving it. Never raises: a run goes on unwatched.

    ``cores``: logical cores of the run. ``variables``: variables of its ranks. ``devices``: number
    of its GPUs, 0 on a CPU. ``samples``: in order of their ``seconds``, on the clock of the ranks.
    ``absent``: why GPUs are not watched, or why the watcher ended. ``counted``: cores whose load
    counts. ``gpus``: name, uuid and ECC mode of each."""

    def __init__(self, cores: Sequence[int], variables: Mapping[str, str], devices: int) -> None:
        self.samples: List[Sample] = []
        self.interval = INTERVAL_SECONDS
        self.used = sorted(cores)
        # Sibling threads count, too: they share the execution units of the run's physical cores.
        self.counted = sorted({thread for core in cores for thread in (core, *siblings(core))})
        self.absent: Dict[str, str] = {}
        self.gpus: List[Dict[str, Any]] = []

        self._variables, self._devices = variables, devices
        self._started = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="watcher", daemon=True)

    def __enter__(self) -> Watcher:
        self._thread.start()
        # Ranks start after the first sample, so processes on a GPU by then belong to others.
        self._started.wait(PATIENCE_SECONDS)
        return self

    def __exit__(self, *error: Any) -> None:
        self._end.set()
        self._thread.join(PATIENCE_SECONDS)
        if self._thread.is_alive():
            self.absent["watcher"] = f"no sensor answered for {PATIENCE_SECONDS:g} s"

    def _work(self) -> None:
        try:
            self.open()
            self.samples.append(self.take())
            self._started.set()
            while not self._end.wait(self.interval):
                self.samples.append(self.take())
                if len(self.samples) > MOST_SAMPLES:
                    del self.samples[1::2]
                    self.interval *= 2
            self.samples.append(self.take())
        except Exception as error:
            self.absent["watcher"] = f"{type(error).__name__}: {error}"
        finally:
            self._started.set()

    def open(self) -> None:
        """Open the sources in the sampling thread, which moves to cores that the run leaves
        free."""
        free = os.sched_getaffinity(0).difference(self.counted)
        if free:
            os.sched_setaffinity(0, free)
        # Load of a launcher on the run's cores does not count as foreign load.
        self._beside = not free
        self._own = OwnTime(os.getpid())
        self._sensors = Sensors(self.counted)
        self._gpus: Optional[nvml.Gpus] = None
        if self._devices:
            try:
                self._gpus = nvml.find(self._variables, self._devices)
                self.gpus = self._gpus.facts
            except nvml.Unwatchable as error:
                self.absent["gpus"] = str(error)

    def take(self) -> Sample:
        """Return one sample, taken now."""
        sample: Sample = {"seconds": time.perf_counter()}
        sample.update(self._sensors.read())
        own = self._own.read()
        sample["machine_own_seconds"] = own["ranks"] + own["launcher"]
        sample["own_seconds"] = own["ranks"] + (own["launcher"] if self._beside else 0.0)
        if self._gpus:
            sample.update(self._gpus.read(self._own.processes))
        return sample


def summary(watcher: Watcher, ranks: Sequence[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Return the record's ``watch``; None for a run without a timed region."""
    window = window_of(ranks)
    return None if window is None else summarize(watcher, window)


def window_of(ranks: Sequence[Dict[str, Any]]) -> Optional[Window]:
    """Return the time from the first rank's start to the last one's end; None where no rank was
    timed.

    Both are seconds of the clock that all processes of a machine share."""
    timed = [rank for rank in ranks if "window_start" in rank and "window_seconds" in rank]
    if not timed:
        return None
    ends = [rank["window_start"] + rank["window_seconds"] for rank in timed]
    return min(rank["window_start"] for rank in timed), max(ends)


def at(samples: Sequence[Sample], name: str, moment: float) -> Optional[float]:
    """Return a counter at ``moment``, interpolated linearly between neighbouring samples; None
    where there are none."""
    points = [(s["seconds"], s[name]) for s in samples if s.get(name) is not None]
    for (before, low), (after, high) in zip(points, points[1:]):
        if before <= moment <= after and after > before:
            return float(low + (high - low) * (moment - before) / (after - before))
    return None


def growth(samples: Sequence[Sample], name: str, window: Window) -> Optional[float]:
    """Return the growth of a counter in the window."""
    low, high = (at(samples, name, moment) for moment in window)
    return None if low is None or high is None else high - low


def summarize(watcher: Watcher, window: Window) -> Dict[str, Any]:
    """Return a summary of ``window``.

    Sums (load, energy) are exact for any window, if they grew evenly between two samples. Events
    are counted from the last sample before the window to the first after it. Other values
    (frequency, temperature, throttle reasons) come from samples within the window, and are None
    without any."""
    (start, end), samples = window, list(watcher.samples)
    inside = [sample for sample in samples if start <= sample["seconds"] <= end]
    before = [sample for sample in samples if sample["seconds"] < start]
    after = [sample for sample in samples if sample["seconds"] > end]
    samples = [*before[-1:], *inside, *after[:1]]
    stolen = growth(samples, "stolen_seconds", window)
    energies = {
        name[: -len(_JOULES)]: growth(samples, name, window)
        for name in (samples[0] if samples else ())
        if name.endswith(_JOULES)
    }
    return {
        "window_seconds": end - start,
        "interval_seconds": watcher.interval,
        "samples": len(inside),
        "cores": watcher.used,
        "counted_cores": watcher.counted,
        "machine_cores": os.cpu_count(),
        "foreign_load": _foreign(samples, "", window),
        "machine_foreign_load": _foreign(samples, "machine_", window),
        "steal": None if stolen is None else stolen / (end - start),
        "frequency_mhz": _range(inside, "mhz"),
        "temperature_celsius_max": max(_values(inside, "temperature_celsius"), default=None),
        "throttle_events": _difference(samples, "throttle_events"),
        "throttled_periods": _difference(samples, "throttled_periods"),
        # By counter: package-0, dram-0, gpu-0.
        "energy_joules": {name: used for name, used in energies.items() if used is not None},
        "gpus": [
            {**facts, **_gpu(f"gpu-{index}_", samples, inside)}
            for index, facts in enumerate(watcher.gpus)
        ],
        "absent": dict(watcher.absent),
    }


def _values(samples: Sequence[Sample], name: str) -> List[Any]:
    return [sample[name] for sample in samples if sample.get(name) is not None]


def _difference(samples: Sequence[Sample], name: str) -> Optional[float]:
    counts = _values(samples, name)
    return counts[-1] - counts[0] if counts else None


def _range(samples: Sequence[Sample], name: str) -> Optional[Dict[str, float]]:
    """Return the least, median and highest value of all samples."""
    values = _values(samples, name)
    if not values:
        return None
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def _foreign(samples: Sequence[Sample], prefix: str, window: Window) -> Optional[Dict[str, float]]:
    """Return the cores that others kept busy, on average. ``prefix``: ``machine_``, or "" for the
    counted cores."""
    busy = growth(samples, f"{prefix}busy_seconds", window)
    own = growth(samples, f"{prefix}own_seconds", window)
    if busy is None or own is None:
        return None
    # The kernel may update one of the two counters later, which makes the difference negative.
    return {"mean": max(0.0, (busy - own) / (window[1] - window[0]))}


def _gpu(prefix: str, samples: Sequence[Sample], inside: Sequence[Sample]) -> Dict[str, Any]:
    def values(name: str) -> List[Any]:
        return _values(inside, prefix + name)

    # Processes may come and go between samples, so samples before and after the window count too.
    others = _values(samples, f"{prefix}other_processes")
    named = [set(nvml.reasons(bits)) for bits in values("throttle_reasons")]
    shares = {name: sum(name in some for some in named) / len(named) for name in _union(named)}
    return {
        "sm_mhz": _range(inside, f"{prefix}sm_mhz"),
        "temperature_celsius_max": max(values("temperature_celsius"), default=None),
        "throttle_reasons": shares if named else None,
        "other_processes": _union(others) if others else None,
    }


def _union(sets: Sequence[Any]) -> List[Any]:
    return sorted(set().union(*sets))
