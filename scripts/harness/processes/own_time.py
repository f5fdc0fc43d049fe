"""Processes of a run, known by the mark in their environment, and the CPU time that they take."""

from __future__ import annotations

import os
import time
from typing import Dict, Iterable, List, NamedTuple, Optional, Set

#: Variable with the mark of a run, in the environment of its processes.
RUN_VARIABLE = "FRAMEBENCH_RUN"

_TICKS = os.sysconf("SC_CLK_TCK")
_NEW_SECONDS = 1.0


class Members:
    """Processes whose environment names ``run``, without the ``launcher``.

    Compilers' workers are found this way, too, which have sessions of their own."""

    def __init__(self, run: str, launcher: int, proc: str = "/proc") -> None:
        self._mark = f"{RUN_VARIABLE}={run}".encode()
        self._launcher = launcher
        self._proc = proc
        self._others: Dict[int, float] = {}  # when each was first seen
        self._known: Set[int] = set()

    def find(self) -> List[int]:
        """Return the processes of the run.

        Processes of others are looked at while they are new, because a new rank has the launcher's
        environment, or none, until it has started its own program."""
        now = time.monotonic()
        here = self._here()
        self._others = {process: seen for process, seen in self._others.items() if process in here}
        ours = []
        for process in here - {self._launcher}:
            is_new = now - self._others.get(process, now) < _NEW_SECONDS
            if process in self._known or (is_new and self._is_of_the_run(process)):
                ours.append(process)
                self._others.pop(process, None)
            else:
                self._others.setdefault(process, now)
        self._known = set(ours)
        return ours

    def ignore_present(self) -> None:
        """Exclude all present processes; call it before the ranks start."""
        self._others = dict.fromkeys(self._here(), float("-inf"))

    def add(self, processes: Iterable[int]) -> None:
        """Add processes that are known to be of the run."""
        self._known.update(processes)

    def _here(self) -> Set[int]:
        return {int(name) for name in os.listdir(self._proc) if name.isdigit()}

    def _is_of_the_run(self, process: int) -> bool:
        try:
            with open(f"{self._proc}/{process}/environ", "rb") as file:
                return self._mark in file.read().split(b"\0")
        except OSError:
            return False  # another user's, or ended meanwhile


class ProcessTimes(NamedTuple):
    """CPU seconds of a process, and of its children that ended and were waited for."""

    parent: int
    own: float
    children: float


def times_of(process: int, proc: str = "/proc") -> Optional[ProcessTimes]:
    """Return the CPU times of a process; None without it."""
    try:
        with open(f"{proc}/{process}/stat", "rb") as file:
            # The process name in brackets may hold any character.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    user, system, of_children, system_of_children = (int(word) / _TICKS for word in fields[11:15])
    return ProcessTimes(int(fields[1]), user + system, of_children + system_of_children)


class OwnTime:
    """CPU time of all processes of ``run``, and of their ``launcher``. ``proc``: the folder
    /proc."""

    def __init__(self, run: str, launcher: int, proc: str = "/proc") -> None:
        self._members = Members(run, launcher, proc)
        self._launcher = launcher
        self._proc = proc
        self._last: Dict[int, ProcessTimes] = {}
        self._lost = 0.0
        self._ranks = 0.0
        self._before = times_of(launcher, proc)

    @property
    def processes(self) -> Set[int]:
        """Processes of the run at the last :meth:`read`, without the launcher."""
        return set(self._last)

    def read(self) -> Dict[str, float]:
        """Return the CPU seconds so far of the ranks and all that they started (``ranks``), and of
        the launcher itself (``launcher``). Neither ever falls."""
        # An ended process is in its parent's account once it was waited for. The launcher is read
        # first, so that a rank that ends meanwhile is missed once rather than counted twice.
        launcher = times_of(self._launcher, self._proc)
        read = {process: times_of(process, self._proc) for process in self._members.find()}
        now = {process: times for process, times in read.items() if times is not None}
        for process, gone in self._last.items():
            if process not in now and gone.parent not in now and gone.parent != self._launcher:
                self._lost += gone.own + gone.children  # nobody of ours will account for it
        self._last = now
        total = self._lost + sum(times.own + times.children for times in now.values())
        if launcher and self._before:
            total += launcher.children - self._before.children
        self._ranks = max(self._ranks, total)
        return {"ranks": self._ranks, "launcher": launcher.own if launcher else 0.0}
