"""CPU time of the run's own processes: what is left of the machine's is somebody else's."""

from __future__ import annotations

import os
from typing import Dict, List, NamedTuple, Optional, Set

from harness.guard import RUN_VARIABLE

_TICKS = os.sysconf("SC_CLK_TCK")


class _Times(NamedTuple):
    """CPU seconds of one process and of those children of it that ended and were waited for."""

    parent: int
    own: float
    children: float


class OwnTime:
    """CPU time of all processes whose environment names ``run``, and of the process ``launcher``
    that started them. ``proc``: the folder /proc."""

    def __init__(self, run: str, launcher: int, proc: str = "/proc") -> None:
        self._mark = f"{RUN_VARIABLE}={run}".encode()
        self._launcher = launcher
        self._proc = proc
        self._others: Dict[int, int] = {}  # how often each was looked at
        self._last: Dict[int, _Times] = {}
        self._lost = 0.0
        self._ranks = 0.0
        self._before = self._times(launcher)

    @property
    def processes(self) -> Set[int]:
        """The processes of the run at the last :meth:`read`, without the launcher."""
        return set(self._last)

    def read(self) -> Dict[str, float]:
        """CPU seconds so far of the ranks with all that they started (``ranks``), and of the
        launcher itself (``launcher``). Neither ever falls."""
        # A process that ended is in its parent's account from the moment it was waited for. The
        # launcher's first: a rank that ends meanwhile is missed once rather than counted twice.
        launcher = self._times(self._launcher)
        now = {}
        for process in self._of_the_run():
            times = self._times(process)
            if times is not None:
                now[process] = times
        for process, gone in self._last.items():
            if process not in now and gone.parent not in now and gone.parent != self._launcher:
                self._lost += gone.own + gone.children  # nobody of ours will account for it
        self._last = now
        total = self._lost + sum(times.own + times.children for times in now.values())
        if launcher and self._before:
            total += launcher.children - self._before.children
        self._ranks = max(self._ranks, total)
        return {"ranks": self._ranks, "launcher": launcher.own if launcher else 0.0}

    def _of_the_run(self) -> List[int]:
        """Looks at each process of others when it is new and once more: before it executes its
        own program, a new rank still has the launcher's environment."""
        here = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        self._others = {other: looks for other, looks in self._others.items() if other in here}
        ours = []
        for process in here - {self._launcher}:
            if process in self._last or (
                self._others.get(process, 0) < 2 and self._is_of_the_run(process)
            ):
                ours.append(process)
                self._others.pop(process, None)
            else:
                self._others[process] = self._others.get(process, 0) + 1
        return ours

    def _is_of_the_run(self, process: int) -> bool:
        try:
            with open(f"{self._proc}/{process}/environ", "rb") as file:
                return self._mark in file.read().split(b"\0")
        except OSError:
            return False  # another user's, or ended meanwhile

    def _times(self, process: int) -> Optional[_Times]:
        try:
            with open(f"{self._proc}/{process}/stat", "rb") as file:
                # The name in brackets may hold anything.
                words = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        user, system, children_user, children_system = (int(word) for word in words[11:15])
        return _Times(
            int(words[1]),
            (user + system) / _TICKS,
            (children_user + children_system) / _TICKS,
        )
