"""The memory limit of a run: its processes together must not take the machine's memory.

Address space is not limited (RLIMIT_AS), because frameworks reserve far more of it than they use,
and a control group takes rights that few users have. So the launcher looks at what the processes
of the run hold, more often the less is left, and kills them when that is too much. What is read of
each process is an upper bound and costs some 50 microseconds; only where that is over the limit,
the pages that processes share are told apart, which takes the kernel a walk over all of them.
"""

from __future__ import annotations

import re
import time
from typing import Dict, Iterable, List, NamedTuple, Optional

from harness.machine import control_groups
from harness.processes.own_time import Members

_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LIMIT = re.compile(r"([0-9]+(?:[.][0-9]+)?)(%|KiB|MiB|GiB|TiB)")

#: Of the machine's memory, unless told otherwise.
DEFAULT = "90%"

#: So much of the machine's memory always stays free: 1/32.
_RESERVED = 32

#: What a batch that is looked for must leave of the limit, so that later runs with it fit too:
#: memory varies a little from run to run.
_SPARE = 0.03

#: How fast one core may fill memory, in bytes per second: twice as fast as one was seen to. What is
#: faster, the reserve bears until the next look.
_FILLING = 2.0**32
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.02, 0.5

#: Looking may take this part of one core, where it is not to see the peak.
_PART_OF_A_CORE = 0.02


class Limit(NamedTuple):
    """``number`` bytes, or percent of what there is."""

    number: float
    is_percent: bool

    def bytes_of(self, total: int) -> int:
        """In bytes, of ``total`` bytes."""
        return int(total * self.number / 100 if self.is_percent else self.number)


def parse_limit(text: str) -> Limit:
    """``80%`` or ``16GiB``. Raises ValueError for anything else."""
    found = _LIMIT.fullmatch(text)
    number = float(found.group(1)) if found else 0.0
    if not found or number <= 0 or (found.group(2) == "%" and number > 100):
        raise ValueError(f"must be like 16GiB, or a share of up to 100%, not {text!r}")
    unit = found.group(2)
    return Limit(number * _UNITS.get(unit, 1), unit == "%")


class Allowed(NamedTuple):
    """Bytes: what the run may take, and what must stay available on the machine (0 where the
    kernel does not tell what is)."""

    limit: int
    reserve: int


def allowed(limit: Limit, spare: bool, part: float = 1.0, given: Optional[Limit] = None) -> Allowed:
    """What a run that starts now may take. With ``spare``, some of it is kept for later runs, and
    what others have already taken is not counted on. ``part``: of the machine, where others run
    beside it; a limit in percent is of that part. ``given``: of the machine's memory, by the
    scheduler, which not every cluster enforces by control groups."""
    there = control_groups.memory_bytes()
    total = min(there, given.bytes_of(there)) if given else there
    reserve = total // _RESERVED
    most = min(limit.bytes_of(int(part * total)), total - reserve)
    if not spare:
        return Allowed(most, reserve)
    most = int(most * (1 - _SPARE))
    available = available_bytes("/proc")
    if available is not None:
        most = min(most, available - 2 * reserve)
    return Allowed(max(most, 1), reserve)


class Memory:
    """What the processes of ``run``, none of which is there yet, hold, against what they may.

    ``cores``: how many can fill memory at once; ``often``: look as often as may be, to see the
    peak, which a run that is timed must be spared; ``launcher``: the process that does not count;
    ``proc``: the folder /proc.

    ``peak`` is the most they were seen to hold together, in bytes; ``next_look`` says when to
    look again, in monotonic seconds.
    """

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
        self.peak = 0
        self.next_look = 0.0
        self._members = Members(run, launcher, proc)
        self._members.ignore_present()
        self._cores = max(1, cores)
        self._longest = _SHORTEST_SECONDS if often else _LONGEST_SECONDS
        self._proc = proc

    def look(self, ranks: Iterable[int] = ()) -> Optional[str]:
        """Why the run must end, in words; None while it need not. ``ranks``: processes of the run
        that are known, whatever their environment says yet."""
        start = time.monotonic()
        self._members.add(ranks)
        processes = self._members.find()
        held = sum(_held(self._proc, process) for process in processes)
        if held > self.may.limit:
            held = sum(_held_alone(self._proc, process) for process in processes)
        self.peak = max(self.peak, held)
        available = available_bytes(self._proc)
        room = self.may.limit - held
        if available is not None:
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
        """Their entry in the record."""
        return {
            "limit_bytes": self.may.limit,
            "reserve_bytes": self.may.reserve,
            "peak_bytes": self.peak,
        }


def gib(size: int) -> str:
    """Three significant digits: ``16.0``, ``0.0625``."""
    return f"{size / 2**30:#.3g}"


def _held(proc: str, process: int) -> int:
    """Bytes that a process holds and that no file holds for it; what it shares with others
    counts in full."""
    return _sum(f"{proc}/{process}/status", ["RssAnon", "RssShmem"])


def _held_alone(proc: str, process: int) -> int:
    """The same, of what is shared by n processes an n-th part."""
    path = f"{proc}/{process}/smaps_rollup"
    # Before Linux 5.9 there is only the sum with what files hold.
    return _sum(path, ["Pss_Anon", "Pss_Shmem"]) or _sum(path, ["Pss"]) or _held(proc, process)


def available_bytes(proc: str = "/proc") -> Optional[int]:
    """Of memory, that the kernel tells could be taken; None where it does not tell."""
    return _sum(f"{proc}/meminfo", ["MemAvailable"]) or None


def _sum(path: str, keys: List[str]) -> int:
    """Sum of the lines ``key: number kB``, in bytes; 0 where there are none (any more)."""
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
