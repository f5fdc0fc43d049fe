"""Memory allocator of the ranks: glibc's, or a preloaded library. Each rank checks with the kernel
that it is in use.

``scripts/allocators.json`` has the allocators by name: the ``library``, as linkers call it, and the
Debian ``package`` that provides it.
"""

from __future__ import annotations

import ctypes.util
import os
from typing import Dict, List, Optional

from core import bounded

from harness.adapter import Mismatch
from harness.machine.sources import file_text

FILE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "allocators.json"
)


def _known() -> Dict[str, Dict[str, str]]:
    libraries: Dict[str, Dict[str, str]] = bounded.read_json(FILE)
    return libraries


def names() -> List[str]:
    """Return the names of the allocators that can be chosen without a path."""
    return sorted(_known())


def library(requested: str) -> Optional[str]:
    """Return LD_PRELOAD's value for an allocator, given by name or path: a path, or the name under
    which the linker finds it. None where it is missing."""
    known = _known().get(requested)
    if known:
        return ctypes.util.find_library(known["library"])
    return os.path.realpath(requested) if os.path.isfile(requested) else None


def missing(requested: Optional[str]) -> Optional[str]:
    """Return why an allocator cannot be preloaded; None where it can, and where none was
    requested."""
    if requested is None or library(requested):
        return None
    known = _known().get(requested)
    if known is None:
        return f"preload: there is no library {requested}"
    return (
        f"preload: {requested} is not installed: there is no lib{known['library']}.so; "
        f"in Debian it is in the package {known['package']}"
    )


def check_preloaded(name: str, maps: str = "/proc/self/maps") -> str:
    """Return the path of the library ``name`` in this process. Raises Mismatch where it is not
    loaded."""
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
    """Return the bytes of this process in transparent huge pages; None where the kernel does not
    tell."""
    for line in (file_text(rollup) or "").splitlines():
        if line.startswith("AnonHugePages:"):
            return int(line.split()[1]) * 1024
    return None
