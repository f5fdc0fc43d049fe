"""Memory that the processes of a run hold on this machine, and their limit.

RLIMIT_AS is not used, because frameworks reserve far more address space than they use, and control
groups need rights that few users have. The launcher reads the memory several times a second. Shared
pages are counted once only where the sum exceeds the limit, because the kernel must walk over all
pages for that."""

from __future__ import annotations

import os
import time
from typing import Dict, List, Optional

from core import limits
from core.limits import Limit

from harness.processes.descendants import Descendants

#: Seconds between two readings: with a limit, and without one, for the peak alone.
_LIMITED_SECONDS, _SECONDS = 0.1, 0.5


def allowed(limit: Optional[Limit], part: float = 1.0) -> Optional[int]:
    """Return the bytes that a run may hold; None without a ``limit``.

    ``part``: share of the machine where runs are side by side; a limit in percent is of that
    part."""
    if limit is None:
        return None
    return max(1, limit.bytes_of(int(part * limits.memory_bytes())))


class HeldMemory:
    """Memory that the processes of a run hold, without this one, its launcher.

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
        if available is not None:
            total = _sum(f"{self._proc}/meminfo", ["MemTotal"])
            self.others = max(self.others, total - available - held)
        pause = _SECONDS if self.limit is None else _LIMITED_SECONDS
        self.next_look = time.monotonic() + pause
        if self.limit is not None and held > self.limit:
            return f"out of memory: {gib(held)} GiB of the limit of {gib(self.limit)} GiB"
        return None

    def fields(self) -> Dict[str, int]:
        """Return the entry of the record."""
        limit = {} if self.limit is None else {"limit_bytes": self.limit}
        total = limits.memory_bytes()
        peaks = {"peak_bytes": self.peak, "others_bytes": self.others}
        return {**limit, **peaks, "total_bytes": total}


def gib(size: int) -> str:
    """Format bytes as GiB with three significant digits: ``16.0``, ``0.0625``."""
    return f"{size / 2**30:#.3g}"


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


def available_bytes(proc: str = "/proc") -> Optional[int]:
    """Return the bytes of memory that the kernel says are available; None where it does not say."""
    return _sum(f"{proc}/meminfo", ["MemAvailable"]) or None


def _sum(path: str, keys: List[str]) -> int:
    """Return the sum of the lines ``key: number kB`` in bytes; 0 where there are none."""
    total = 0
    try:
        with open(path, "rb") as file:
            for line in file:
                key, _, rest = line.partition(b":")
                if key.decode("ascii", "replace") in keys:
                    total += int(rest.split()[0]) * 1024
    except OSError:
        return 0  # the process has ended
    return total
