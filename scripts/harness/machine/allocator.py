"""What the ranks allocate memory with: a library that is loaded before all others, or glibc's own
allocator with huge pages. Whether it is so is read from the kernel, in each rank.

``scripts/allocators.json`` has the allocators by name: the ``library``, as linkers call it, and the
``package`` of Debian that brings it.
"""

from __future__ import annotations

import ctypes.util
import os
from typing import Dict, List, Mapping, Optional

from harness import bounded
from harness.adapter import Mismatch
from harness.machine.sources import file_text

FILE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "allocators.json"
)
#: Whether the kernel grants huge pages: always, to who asks for them (madvise), or never.
GRANTED = "/sys/kernel/mm/transparent_hugepage/enabled"
#: From glibc 2.35 on: its allocator asks for huge pages.
_TUNABLE = "glibc.malloc.hugetlb=1"


def _known() -> Dict[str, Dict[str, str]]:
    found: Dict[str, Dict[str, str]] = bounded.read_json(FILE)
    return found


def names() -> List[str]:
    """Of the allocators that can be asked for without a path."""
    return sorted(_known())


def library(asked: str) -> Optional[str]:
    """What LD_PRELOAD takes for the allocator, a name or a path: a path, or the name under which
    the linker finds it; None where it is not there."""
    known = _known().get(asked)
    if known:
        return ctypes.util.find_library(known["library"])
    return os.path.realpath(asked) if os.path.isfile(asked) else None


def missing(asked: Optional[str]) -> Optional[str]:
    """Why an allocator cannot be preloaded; None where it can, and where none was asked for."""
    if asked is None or library(asked):
        return None
    known = _known().get(asked)
    if known is None:
        return f"preload: there is no library {asked}"
    return (
        f"preload: {asked} is not installed: there is no lib{known['library']}.so; in Debian it is "
        f"in the package {known['package']}"
    )


def no_huge_pages(granted: str = GRANTED) -> Optional[str]:
    """Why the kernel grants none; None where it does."""
    text = file_text(granted)
    if text is None:
        return "huge pages: this kernel has no transparent ones"
    return "huge pages: the kernel grants none, never" if "[never]" in text else None


def variables(
    preload: Optional[str], huge_pages: bool, environment: Mapping[str, str]
) -> Dict[str, str]:
    """What the ranks have besides those of their ``environment``."""
    found = {}
    if preload is not None:
        # Where it is missing, the linker goes on without, and the rank says so.
        found["LD_PRELOAD"] = library(preload) or preload
    if huge_pages:
        tunables = environment.get("GLIBC_TUNABLES", "").split(":")
        found["GLIBC_TUNABLES"] = ":".join(filter(None, dict.fromkeys([*tunables, _TUNABLE])))
    return found


def check_preloaded(name: str, maps: str = "/proc/self/maps") -> str:
    """The path of the library ``name`` in this process. Raises Mismatch where it has none."""
    with open(maps, errors="replace", encoding="utf-8") as file:
        paths = {
            path[0] for path in (line.rstrip("\n").split(None, 5)[5:] for line in file) if path
        }
    for path in sorted(paths):
        is_it = path == name if "/" in name else os.path.basename(path).startswith(name)
        if is_it:
            return path
    raise Mismatch(f"preload: {name} was not loaded into the process")


def huge_page_bytes(rollup: str = "/proc/self/smaps_rollup") -> Optional[int]:
    """Bytes of this process in transparent huge pages; None where the kernel does not tell."""
    for line in (file_text(rollup) or "").splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024
    return None


def check_huge_pages(held: Optional[int]) -> None:
    """Raises Mismatch where a process that asked for huge pages does not hold any."""
    if not held:
        what = "the kernel does not tell of any" if held is None else "the process holds none"
        raise Mismatch(f"huge pages were asked for, but {what}")
