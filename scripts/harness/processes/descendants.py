"""Processes of a run, which are all descendants of its launcher: the CPU time and memory that they
take, the memory limit, and their end.

The launcher adopts orphans. So all processes that ranks start stay its descendants, whatever their
session. A process that nobody waits for stays in /proc with its CPU time after it has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import itertools
import os
import re
import signal
import time
from typing import Dict, Iterable, List, NamedTuple, Optional, Set

from core import limits
from core.limits import Limit

from harness.hardware import file_text

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_TICKS = os.sysconf("SC_CLK_TCK")
#: Seconds between two readings of memory: with a limit, and without one, for the peak alone.
_LIMITED_SECONDS, _SECONDS = 0.1, 0.5
#: Seconds for processes to end after SIGTERM, and after SIGKILL.
_TERM_SECONDS, _KILL_SECONDS = 2.0, 3.0
#: Folder of named shared memory.
SHARED = "/dev/shm"
#: Prefixes of the names of loaders' shared memory, with the process id: PaddlePaddle's and MXNet's.
_SEGMENTS = ("paddle_{}_", "mx_{:x}_")


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
    text = file_text(f"{proc}/{process}/stat")
    if text is None:
        return None
    fields = text.rpartition(")")[2].split()  # the process name in brackets may hold any character
    user, system, of_children, system_of_children = (int(word) / _TICKS for word in fields[11:15])
    is_running = fields[0] not in ("Z", "X")
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


def allowed_memory(limit: Optional[Limit], part: float = 1.0) -> Optional[int]:
    """Return the bytes that a run may hold; None without a ``limit``.

    ``part``: share of the machine where runs are side by side; a limit in percent is of that
    part."""
    if limit is None:
        return None
    return max(1, limit.bytes_of(int(part * limits.memory_bytes())))


class HeldMemory:
    """Memory that the processes of a run hold, without this one, its launcher.

    RLIMIT_AS is not used, because frameworks reserve far more address space than they use, and
    control groups need rights that few users have. The launcher reads the memory several times a
    second. Shared pages are counted once only where the sum exceeds the limit, because the kernel
    must walk over all pages for that.

    ``limit``: in bytes, None without one; ``apart``: see :class:`Descendants`; ``proc``: the folder
    /proc. ``peak``: most bytes held together. ``others``: most bytes that other processes held
    meanwhile. ``next_look``: time of the next reading, in monotonic seconds."""

    def __init__(
        self, limit: Optional[int], apart: Optional[int] = None, proc: str = "/proc"
    ) -> None:
        self.limit = limit
        self.peak = self.others = 0
        self.next_look = 0.0
        self._descendants = Descendants(os.getpid(), apart, proc)
        self._proc = proc

    def reason_to_end(self) -> Optional[str]:
        """Return why the run must end, or None."""
        processes = self._descendants.find()
        held = sum(_private_bytes(self._proc, process) for process in processes)
        if self.limit is not None and held > self.limit:
            held = sum(_held_alone(self._proc, process) for process in processes)
        self.peak = max(self.peak, held)
        available = available_bytes(self._proc)
        if available:
            total = _sum(f"{self._proc}/meminfo", ["MemTotal"])
            self.others = max(self.others, total - available - held)
        pause = _SECONDS if self.limit is None else _LIMITED_SECONDS
        self.next_look = time.monotonic() + pause
        if self.limit is not None and held > self.limit:
            numbers = f"{held / 2**30:#.3g} GiB of the limit of {self.limit / 2**30:#.3g} GiB"
            return f"out of memory: {numbers}"
        return None

    def fields(self) -> Dict[str, int]:
        """Return the entry of the record."""
        limit = {} if self.limit is None else {"limit_bytes": self.limit}
        peaks = {"peak_bytes": self.peak, "others_bytes": self.others}
        return {**limit, **peaks, "total_bytes": limits.memory_bytes()}


def _private_bytes(proc: str, process: int) -> int:
    """Return the bytes that a process holds, without pages of files; shared memory counts in
    full."""
    return _sum(f"{proc}/{process}/status", ["RssAnon", "RssShmem"])


def _held_alone(proc: str, process: int) -> int:
    """Return the bytes that a process holds, without pages of files; memory shared by n processes
    counts as an n-th."""
    path = f"{proc}/{process}/smaps_rollup"
    # Before Linux 5.9 there is only a sum that includes pages of files.
    return (
        _sum(path, ["Pss_Anon", "Pss_Shmem"])
        or _sum(path, ["Pss"])
        or _private_bytes(proc, process)
    )


def available_bytes(proc: str = "/proc") -> int:
    """Return the bytes of memory that the kernel says are available; 0 where it does not say."""
    return _sum(f"{proc}/meminfo", ["MemAvailable"])


def _sum(path: str, keys: List[str]) -> int:
    """Return the sum of the lines ``key: number kB`` in bytes; 0 where there are none."""
    lines = re.findall(rf"^(?:{'|'.join(keys)}):\s*(\d+)", file_text(path) or "", re.M)
    return 1024 * sum(map(int, lines))


def end(apart: Optional[int] = None, at_once: bool = False) -> None:
    """End all processes of a run on this node, and remove the shared memory of their loaders.
    ``apart``: see :class:`Descendants`.

    Processes first get SIGTERM (Python's trackers of shared memory survive it and remove the
    memory), then, or ``at_once``, SIGKILL."""
    descendants = Descendants(os.getpid(), apart)
    now = time.monotonic()
    patience, late = now if at_once else now + _TERM_SECONDS, now + _TERM_SECONDS + _KILL_SECONDS
    ended: Set[int] = set()
    while True:
        left = {process for process, state in descendants.find().items() if state.is_running}
        if not left or time.monotonic() >= late:
            break
        impatient = time.monotonic() >= patience
        for process in left if impatient else left - ended:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL if impatient else signal.SIGTERM)
        ended |= left
        time.sleep(0.01)
    remove_shared(ended)


def remove_shared(processes: Iterable[int]) -> None:
    """Remove shared-memory files that bear the id of one of these ``processes``, as loaders name
    them.

    The processes must have ended, or be about to."""
    names = [name.format(process) for process in processes for name in _SEGMENTS]
    for path in itertools.chain.from_iterable(glob.glob(f"{SHARED}/{name}*") for name in names):
        with contextlib.suppress(OSError):  # another process may have removed the file
            if os.stat(path).st_uid == os.getuid():
                os.unlink(path)
