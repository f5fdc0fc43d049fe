"""Limits on memory and cores: the limits of this process by its control groups (version 1 or 2),
and memory limits of runs, in bytes or percent of the available memory."""

from __future__ import annotations

import os
import re
from typing import List, NamedTuple, Optional

#: Where the kernel lists this process's control groups, and where they are mounted.
OWN = "/proc/self/cgroup"
MOUNTED = "/sys/fs/cgroup"
#: Files that count processes killed for lack of memory, of version 2 and of version 1.
_OOM_COUNTERS = ("memory.events", "memory.oom_control")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_LIMIT = re.compile(r"([0-9]+(?:[.][0-9]+)?)(%|KiB|MiB|GiB|TiB)")


def control_groups(controller: str) -> List[str]:
    """Return the folders of this process's control groups, innermost first.

    Version 2 has one set of groups, version 1 one for each ``controller`` (memory, cpu)."""
    for line in _text(OWN).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            root = os.path.join(MOUNTED, controller if controllers else "")
            parts = [part for part in path.split("/") if part not in ("", "..")]
            if os.path.isdir(root):
                lengths = range(len(parts), -1, -1)
                return [os.path.join(root, *parts[:length]) for length in lengths]
    return []


def _numbers(folder: str, name: str) -> List[int]:
    """Return the leading numbers of a control file; empty for ``max`` or without the file."""
    fields = _text(os.path.join(folder, name)).split()
    return [int(word) for word in fields] if all(word.isdigit() for word in fields) else []


def memory_bytes() -> int:
    """Return the memory for this process: the machine's, or the tightest control group's limit."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(total, memory_limit() or total)


def memory_limit() -> Optional[int]:
    """Return the tightest limit in bytes; None without one (version 1 uses a huge number)."""
    limits = [
        number
        for folder in control_groups("memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        for number in _numbers(folder, name)
        if number < 2**60
    ]
    return min(limits) if limits else None


def cpu_limit() -> Optional[float]:
    """Return the tightest limit in cores; None without one."""
    limits = []
    for folder in control_groups("cpu"):
        quota = _numbers(folder, "cpu.max")
        quota = quota or _numbers(folder, "cpu.cfs_quota_us") + _numbers(
            folder, "cpu.cfs_period_us"
        )
        if len(quota) == 2 and quota[1] > 0:
            limits.append(quota[0] / quota[1])
    return min(limits) if limits else None


def whole_cores() -> Optional[int]:
    """Return the whole cores within the tightest CPU quota, at least one; None without a quota."""
    limit = cpu_limit()
    return None if limit is None else max(1, int(limit))


def throttled_periods() -> int:
    """Return in how many periods a CPU quota has stopped this process's groups so far."""
    stats = (_text(os.path.join(folder, "cpu.stat")) for folder in control_groups("cpu"))
    found = [re.search(r"^nr_throttled (\d+)$", text, re.MULTILINE) for text in stats]
    return sum(int(match.group(1)) for match in found if match)


def oom_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory.

    Counted in this process's control group if it has a counter, else on the whole machine."""
    own = control_groups("memory")[:-1][:1]  # without the root, which is last and has no counter
    counters = [os.path.join(folder, name) for folder in own for name in _OOM_COUNTERS]
    for source in (*counters, "/proc/vmstat"):
        match = re.search(r"^oom_kill (\d+)$", _text(source), re.MULTILINE)
        if match:
            return int(match.group(1))
    return 0


def _text(path: str) -> str:
    """Return the text of a file; "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Limit(NamedTuple):
    """Memory limit of ``number`` bytes, or percent of the total."""

    number: float
    is_percent: bool

    def bytes_of(self, total: int) -> int:
        """Return the limit in bytes, of ``total`` bytes."""
        return int(total * self.number / 100 if self.is_percent else self.number)

    def __str__(self) -> str:
        """Return the text of which :func:`parse_limit` makes the limit."""
        return f"{self.number:.6f}%" if self.is_percent else f"{self.number / 2**20:.6f}MiB"


def parse_limit(text: str) -> Limit:
    """Parse ``80%`` or ``16GiB``. Raises ValueError for anything else."""
    match = _LIMIT.fullmatch(text)
    number = float(match.group(1)) if match else 0.0
    if not match or number <= 0 or (match.group(2) == "%" and number > 100):
        raise ValueError(f"must be like 16GiB, or a share of up to 100%, not {text!r}")
    unit = match.group(2)
    return Limit(number * _UNITS.get(unit, 1), unit == "%")
