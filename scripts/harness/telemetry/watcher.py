"""Watch the machine while ranks are timed.

A thread of the launcher, which otherwise sleeps, takes a sample every half second: about 20 small
files, and 7 calls for each GPU. It is a thread because a hanging sensor must not keep the launcher
from the time limit. It runs on a core that the run does not use, where there is one. Load and
energy are counters, so nothing need happen at the ends of the timed region:
:mod:`harness.telemetry.watch_summary` interpolates.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Any, Dict, List, Mapping, Optional, Sequence

from harness.machine.cores import siblings
from harness.processes.own_time import OwnTime
from harness.telemetry import nvml
from harness.telemetry.sensors import Sensors

INTERVAL_SECONDS = 0.5

#: Beyond this many samples every other one is dropped and the interval doubles.
MOST_SAMPLES = 1000

#: Seconds that ranks wait for the first sample, and the record for the last.
PATIENCE_SECONDS = 10.0

Sample = Dict[str, Any]


def shared_with(cores: Sequence[int]) -> List[int]:
    """Return ``cores`` and the other threads of the same physical cores, which share their
    units."""
    return sorted({sibling for core in cores for sibling in siblings(core)}.union(cores))


class Watcher:
    """Samples from entering the context until leaving it. Never raises: a run goes on unwatched.

    ``cores``: logical cores of the run. ``variables``: of its ranks. ``gpus``: number of its
    devices, 0 on a CPU. ``samples``: in order of their ``seconds``, on the clock of the ranks."""

    def __init__(
        self, run: str, cores: Sequence[int], variables: Mapping[str, str], gpus: int
    ) -> None:
        self.samples: List[Sample] = []
        self.interval = INTERVAL_SECONDS
        self.sources = Sources(run, cores, variables, gpus)
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
            self.sources.absent["watcher"] = f"no sensor answered for {PATIENCE_SECONDS:g} s"

    def _work(self) -> None:
        try:
            self.sources.open()
            self.samples.append(self.sources.take())
            self._started.set()
            while not self._end.wait(self.interval):
                self.samples.append(self.sources.take())
                if len(self.samples) > MOST_SAMPLES:
                    del self.samples[1::2]
                    self.interval *= 2
            self.samples.append(self.sources.take())
        except Exception as error:
            self.sources.absent["watcher"] = f"{type(error).__name__}: {error}"
        finally:
            self._started.set()


class Sources:
    """Sources of a sample.

    ``absent``: what is not watched and why. ``counted``: cores whose load counts. ``gpus``: name,
    uuid and ECC mode of each device."""

    def __init__(
        self, run: str, cores: Sequence[int], variables: Mapping[str, str], gpus: int
    ) -> None:
        self.used = sorted(cores)
        self.counted = shared_with(cores)
        self.absent: Dict[str, str] = {}
        self.gpus: List[Dict[str, Any]] = []
        self.memory_bytes: Optional[int] = None
        self._run = run
        self._variables = variables
        self._devices = gpus

    def open(self) -> None:
        """Open the sources in the sampling thread, which moves to cores that the run leaves
        free."""
        free = os.sched_getaffinity(0).difference(self.counted)
        if free:
            os.sched_setaffinity(0, free)
        # Where the launcher shares the run's cores, it does not count as load of others.
        self._beside = not free
        self._own = OwnTime(self._run, os.getpid())
        self._sensors = Sensors(self.counted)
        self._gpus: Optional[nvml.Gpus] = None
        if self._devices:
            try:
                self._gpus = nvml.find(self._variables, self._devices)
                self.gpus = self._gpus.facts
            except nvml.Unwatchable as error:
                self.absent["gpus"] = str(error)
        self.absent.update(self._sensors.absent)
        self.memory_bytes = self._sensors.memory_bytes()

    def take(self) -> Sample:
        """Return one sample, taken now."""
        sample: Sample = {"seconds": time.perf_counter()}
        sample.update(self._sensors.read())
        own = self._own.read()
        sample["machine_own_seconds"] = own["ranks"] + own["launcher"]
        sample["own_seconds"] = own["ranks"] + (own["launcher"] if self._beside else 0.0)
        if self._gpus:
            sample.update(self._gpus.read(self._own.processes))
            self.absent.update(self._gpus.absent)
        return sample
