"""Kernels over the host's memory, in C (`host_memory.c` next to this file), and their arrays.

They are compiled when needed: Python has no loops over memory that are as fast, or that wait for
each load. Arrays come from the C library's allocator, as STREAM's do. NumPy's arrays would lie in
huge pages wherever the kernel has some. Standard library and numpy.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import tempfile
from typing import Any, Dict, List

from core import limits, programs

from harness.adapter import Mismatch, Unsupported
from harness.hardware import file_line
from harness.processes.descendants import available_bytes

#: Default size of the largest array or working set, relative to the last-level cache, as STREAM's
#: rules demand.
TIMES_CACHE = 4
LINE = 64  # bytes of a cache line, which no two threads share
ITEM = 8  # bytes of a double
_OPTIONS = ("-O3", "-march=native", "-fPIC", "-shared")
_CACHES = "/sys/devices/system/cpu/cpu*/cache/index*"


def compiled() -> ctypes.CDLL:
    """Return the kernels as a library. Raises Unsupported without a C compiler, or where it
    fails."""
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise Unsupported(
            f"no C compiler {compiler!r} for the kernels: install one (Debian: apt-get install gcc "
            "libc6-dev), or name one in CC"
        )
    source = os.path.splitext(os.path.realpath(__file__))[0] + ".c"
    with tempfile.TemporaryDirectory(prefix="framebench-kernels-") as folder:
        target = os.path.join(folder, "kernels.so")
        done = programs.run([compiler, *_OPTIONS, "-o", target, source])
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
            raise Unsupported(f"the C compiler {compiler!r} does not compile the kernels: {reason}")
        kernels = ctypes.CDLL(target)
    for kernel in (kernels.copy, kernels.scale, kernels.add, kernels.triad):
        kernel.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_double, ctypes.c_long]
        kernel.restype = None
    kernels.chase.argtypes = [ctypes.c_void_p, ctypes.c_long]
    kernels.chase.restype = ctypes.c_void_p
    return kernels


def aligned(elements: int) -> Any:
    """Return an uninitialized float64 array that starts at a cache line and lives as long as the
    process. Raises MemoryError."""
    import numpy as np

    allocate = ctypes.CDLL(None).malloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    address = allocate(ITEM * elements + LINE)
    if not address:
        raise MemoryError(f"no {ITEM * elements} bytes for an array")
    content: Any = (ctypes.c_double * elements).from_address(-(-address // LINE) * LINE)
    return np.frombuffer(content)


def default_bytes(parameter: str, arrays: int = 1) -> int:
    """Return the default size of each of ``arrays`` of a node: TIMES_CACHE times the last-level
    cache, but together at most an eighth of the free memory, because a virtual machine may report
    the caches of its whole host. Raises Mismatch where the cache is unknown and ``parameter`` must
    be set."""
    cache, total = largest_cache(), limits.memory_bytes()
    if not cache:
        raise Mismatch(f"the kernel does not report the size of the caches: set {parameter}")
    available = min(available_bytes() or total, total)
    return min(TIMES_CACHE * cache, available // 8 // arrays)


def largest_cache() -> int:
    """Return the bytes of all last-level caches; 0 where the kernel does not report them."""
    caches: Dict[str, List[int]] = {}
    for folder in glob.glob(_CACHES):
        level, size, shared = (
            file_line(os.path.join(folder, name)) for name in ("level", "size", "shared_cpu_list")
        )
        if level and size and shared:
            units = {"K": 2**10, "M": 2**20, "G": 2**30}
            number = int(size.rstrip("KMG")) * units.get(size[-1], 1)
            caches[f"{level} {shared}"] = [int(level), number]
    last = max((level for level, _ in caches.values()), default=0)
    return sum(size for level, size in caches.values() if level == last)
