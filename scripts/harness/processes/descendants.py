"""Processes of a run, which are all descendants of its launcher, and the CPU time that they take.

The launcher adopts orphans. So all processes that ranks start stay its descendants, whatever their
session. A process that nobody waits for stays in /proc with its CPU time after it has ended."""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Dict, NamedTuple, Optional, Set

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TICKS = os.sysconf("SC_CLK_TCK")


def adopt_orphans() -> None:
    """Become the parent of all descendants whose own parent ends."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def signal_when_parent_dies(number: signal.Signals) -> None:
    """Ask the kernel to send ``number`` to this process at the parent's death."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


class ProcessState(NamedTuple):
    """State of a process. ``own``, ``children``: CPU seconds of it, and of its children that ended
    and were waited for."""

    parent: int
    is_running: bool
    own: float
    children: float


def state_of(process: int, proc: str = "/proc") -> Optional[ProcessState]:
    """Return the state of a process; None without it."""
    try:
        with open(f"{proc}/{process}/stat", "rb") as file:
            # The process name in brackets may hold any character.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    user, system, of_children, system_of_children = (int(word) / _TICKS for word in fields[11:15])
    is_running = fields[0] not in (b"Z", b"X")
    return ProcessState(int(fields[1]), is_running, user + system, of_children + system_of_children)


class Descendants:
    """Descendants of ``launcher`` except ``apart``, a child that belongs to no run. ``proc``: the
    folder /proc."""

    def __init__(self, launcher: int, apart: Optional[int] = None, proc: str = "/proc") -> None:
        self._launcher, self._proc = launcher, proc
        self._roots = {0: False, launcher: True, **({} if apart is None else {apart: False})}
        self._known: Dict[int, bool] = {}

    def find(self) -> Dict[int, ProcessState]:
        """Return the states of the descendants. Each other process is read only once."""
        here = {int(name) for name in os.listdir(self._proc) if name.isdigit()}
        known = {process: ours for process, ours in self._known.items() if process in here}
        self._known = {**known, **self._roots}
        ours = [process for process in here - {self._launcher} if self._is_ours(process)]
        states = {process: state_of(process, self._proc) for process in ours}
        return {process: state for process, state in states.items() if state is not None}

    def _is_ours(self, process: int) -> Optional[bool]:
        """Return whether a process is a descendant; None where it has ended meanwhile."""
        if process not in self._known:
            state = state_of(process, self._proc)
            is_ours = None if state is None else self._is_ours(state.parent)
            if is_ours is None:
                return None
            self._known[process] = is_ours
        return self._known[process]


class OwnTime:
    """CPU time of all processes of a run, and of their ``launcher``. ``processes``: those of the
    run at the last :meth:`read`."""

    def __init__(self, launcher: int, proc: str = "/proc") -> None:
        self.processes: Set[int] = set()
        self._descendants = Descendants(launcher, proc=proc)
        self._launcher, self._proc = launcher, proc
        self._ranks = 0.0

    def read(self) -> Dict[str, float]:
        """Return the CPU seconds of the ranks and all that they started (``ranks``), and of the
        launcher itself (``launcher``), since some moment. Neither ever falls."""
        # The CPU time of an ended process is added to its parent's once it was waited for. The
        # launcher is read first, so that a rank that ends meanwhile is missed once rather than
        # counted twice.
        launcher = state_of(self._launcher, self._proc)
        found = self._descendants.find()
        self.processes = set(found)
        total = sum(state.own + state.children for state in found.values())
        self._ranks = max(self._ranks, total + (launcher.children if launcher else 0.0))
        return {"ranks": self._ranks, "launcher": launcher.own if launcher else 0.0}
