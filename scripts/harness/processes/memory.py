"""Memory limit of a run, so that its processes do not exhaust the machine.

RLIMIT_AS is not used, because frameworks reserve far more address space than they use, and control
groups need rights that few users have. Instead the launcher looks at what the run's processes hold,
more often the less is left, and kills them when it is too much. The first value of each process is
an upper bound that costs about 50 microseconds. Only where the bound exceeds the limit are shared
pages told apart, for which the kernel walks over all of them.
"""

from __future__ import annotations

import re
import time
from typing import Dict, Iterable, List, NamedTuple, Optional

from core import control_groups

from harness.processes.own_time import Members

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LIMIT = re.compile(r"([0-9]+(?:[.][0-9]+)?)(%|KiB|MiB|GiB|TiB)")

#: Default limit, of the machine's memory.
DEFAULT = "90%"

#: Part of the machine's memory that always stays free: 1/32.
_RESERVED = 32

#: Part of the limit that a search for a batch must leave free, because memory varies between runs.
_SPARE = 0.03

#: Assumed bytes per second that one core fills: twice the most observed. The reserve bears what is
#: faster until the next look.
_FILLING = 2.0**32
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.02, 0.5

#: Largest part of a core for looking, unless the peak is to be seen.
_PART_OF_A_CORE = 0.02


class Limit(NamedTuple):
    """Memory limit of ``number`` bytes, or percent of the total."""

    number: float
    is_percent: bool

    def bytes_of(self, total: int) -> int:
        """Return the limit in bytes, of ``total`` bytes."""
        return int(total * self.number / 100 if self.is_percent else self.number)


def parse_limit(text: str) -> Limit:
    """Parse ``80%`` or ``16GiB``. Raises ValueError for anything else."""
    match = _LIMIT.fullmatch(text)
    number = float(match.group(1)) if match else 0.0
    if not match or number <= 0 or (match.group(2) == "%" and number > 100):
        raise ValueError(f"must be like 16GiB, or a share of up to 100%, not {text!r}")
    unit = match.group(2)
    return Limit(number * _UNITS.get(unit, 1), unit == "%")


class Allowed(NamedTuple):
    """Bytes that the run may take, and that must stay available on the machine (0 where
    unknown)."""

    limit: int
    reserve: int


def allowed(
    limit: Limit, spare: bool, part: float = 1.0, tighter: Optional[Limit] = None
) -> Allowed:
    """Return what a run that starts now may take.

    With ``spare`` some memory is left for later runs, and memory that others hold is not counted
    on. ``part``: share of the machine where runs are side by side; a limit in percent is of that
    part. ``tighter``: memory granted by the scheduler, which not every cluster enforces by control
    groups."""
    there = control_groups.memory_bytes()
    total = min(there, tighter.bytes_of(there)) if tighter else there
    reserve = total // _RESERVED
    most = min(limit.bytes_of(int(part * total)), total - reserve)
    if not spare:
        return Allowed(most, reserve)
    most = int(most * (1 - _SPARE))
    available = available_bytes("/proc")
    if available is not None:
        most = min(most, available - 2 * reserve)
    return Allowed(max(most, 1), reserve)


class MemoryMonitor:
    """Monitor of the memory that the processes of ``run`` hold, and of their limit.

    ``cores``: how many can fill memory at once; ``often``: look as often as possible, to see the
    peak, which would disturb a timed run; ``launcher``: the process that does not count; ``proc``:
    the folder /proc.

    ``peak``: most bytes held together. ``others``: most that others held. ``next_look``: when to
    look again, in monotonic seconds."""

    def __init__(
        self,
        run: str,
        launcher: int,
        may: Allowed,
        cores: int,
        often: bool = False,
        proc: str = "/proc",
    ) -> None:
        self.may = may
        self.peak = self.others = 0
        self.next_look = 0.0
        self._members = Members(run, launcher, proc)
        self._members.ignore_present()
        self._cores = max(1, cores)
        self._longest = _SHORTEST_SECONDS if often else _LONGEST_SECONDS
        self._proc = proc

    def look(self, ranks: Iterable[int] = ()) -> Optional[str]:
        """Return why the run must end, or None. ``ranks``: known processes of the run, whatever
        their environment says yet."""
        start = time.monotonic()
        self._members.add(ranks)
        processes = self._members.find()
        held = sum(_private_bytes(self._proc, process) for process in processes)
        if held > self.may.limit:
            held = sum(_held_alone(self._proc, process) for process in processes)
        self.peak = max(self.peak, held)
        available = available_bytes(self._proc)
        room = self.may.limit - held
        if available is not None:
            total = _sum(f"{self._proc}/meminfo", ["MemTotal"])
            self.others = max(self.others, total - available - held)
            room = min(room, available - self.may.reserve)
        now = time.monotonic()
        wait = min(self._longest, max(_SHORTEST_SECONDS, room / (_FILLING * self._cores)))
        rest = min(self._longest, (now - start) / _PART_OF_A_CORE)
        self.next_look = now + max(wait, rest)
        if held > self.may.limit:
            return f"out of memory: {gib(held)} GiB of the limit of {gib(self.may.limit)} GiB"
        if available is not None and available < self.may.reserve:
            return (
                f"out of memory: {gib(available)} GiB left on the machine, of which "
                f"{gib(self.may.reserve)} GiB must be; the run holds {gib(held)} GiB"
            )
        return None

    def fields(self) -> Dict[str, int]:
        """Return the entry of the record."""
        return {
            "limit_bytes": self.may.limit,
            "reserve_bytes": self.may.reserve,
            "peak_bytes": self.peak,
            "others_bytes": self.others,
        }


def gib(size: int) -> str:
    """Format bytes as GiB with three significant digits: ``16.0``, ``0.0625``."""
    return f"{size / 2**30:#.3g}"


def _private_bytes(proc: str, process: int) -> int:
    """Return the bytes that a process holds without those of files; shared memory counts in
    full."""
    return _sum(f"{proc}/{process}/status", ["RssAnon", "RssShmem"])


def _held_alone(proc: str, process: int) -> int:
    """Return the bytes that a process holds without those of files; of memory shared by n processes
    an n-th counts."""
    path = f"{proc}/{process}/smaps_rollup"
    # Before Linux 5.9 there is only the sum with what files hold.
    return (
        _sum(path, ["Pss_Anon", "Pss_Shmem"])
        or _sum(path, ["Pss"])
        or _private_bytes(proc, process)
    )


def available_bytes(proc: str = "/proc") -> Optional[int]:
    """Return the bytes of memory that the kernel says are available; None where it does not
    tell."""
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
        return 0  # ended meanwhile
    return total
