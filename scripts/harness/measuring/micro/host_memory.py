"""Kernels over the host's memory, in C (`host_memory.c` next to this file), and what they work on.

The four kernels of STREAM (McCalpin, "Memory Bandwidth and Machine Balance in Current High
Performance Computers", 1995) are counted as STREAM does: each array that a kernel names is moved
once. A chain of pointers has the latency of loads: each cache line of a working set holds the
address of another, in a random cycle through all of them, so that neither order nor prefetching
predicts the next (as lat_mem_rd of lmbench; McVoy and Staelin, "lmbench: Portable Tools for
Performance Analysis", 1996).

They are compiled when needed: Python has no loops over memory that are as fast, or that wait for
each load. Arrays come from the C library's allocator, as STREAM's do. NumPy's own would lie in huge
pages wherever the kernel has some.
"""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import tempfile
import threading
from typing import Any, Dict, List

from core import control_groups, programs

from harness.adapter import Mismatch, Unsupported
from harness.machine.sources import file_line
from harness.processes import memory

#: Arrays that each kernel of STREAM moves.
MOVED = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
#: Scalar with which the four kernels leave the arrays as they were. STREAM's own 3 multiplies them
#: by 15 each time, until they overflow.
SCALAR = 2**0.5 - 1
#: Bytes of the smallest working set of a chain.
SMALLEST = 4096
_OPTIONS = ("-O3", "-march=native", "-fPIC", "-shared")
_CACHES = "/sys/devices/system/cpu/cpu*/cache/index*"
LINE = 64  # bytes of a cache line, which no two threads share
_ITEM = 8  # bytes of a double


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
    for name in MOVED:
        function = getattr(kernels, name)
        function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_double, ctypes.c_long]
        function.restype = None
    kernels.chase.argtypes, kernels.chase.restype = (
        [ctypes.c_void_p, ctypes.c_long],
        ctypes.c_void_p,
    )
    return kernels


class Stream:
    """Float64 arrays a, b and c with ``elements`` each, split among ``threads``.

    ``a`` is random; b and c follow from it as if the kernels had run. Raises MemoryError."""

    def __init__(self, kernels: ctypes.CDLL, elements: int, threads: int, seed: int) -> None:
        import numpy as np

        self._kernels = kernels
        self.a, self.b, self.c = (aligned(elements) for _ in range(3))
        random = np.random.RandomState(seed)
        per_line = LINE // _ITEM
        ends = [elements * number // threads // per_line * per_line for number in range(threads)]
        self._parts = list(zip(ends, [*ends[1:], elements]))
        self._random = random.uniform(1, 2, min(elements, 65536))
        self._each(self._fill)

    def _fill(self, start: int, end: int) -> None:
        """Fill a part by the thread that uses it, because memory is placed on the node that first
        writes it."""
        import numpy as np

        self.a[start:end] = np.resize(self._random, end - start)
        self.b[start:end] = SCALAR * self.a[start:end]
        self.c[start:end] = 0

    def run(self, kernel: str) -> None:
        """Run ``kernel`` in all threads."""
        function = getattr(self._kernels, kernel)
        bases = [array.ctypes.data for array in (self.a, self.b, self.c)]

        def work(start: int, end: int) -> None:
            function(*(base + _ITEM * start for base in bases), SCALAR, end - start)

        self._each(work)

    def _each(self, work: Any) -> None:
        """Call ``work`` for each part, in a thread of its own."""
        others = [threading.Thread(target=work, args=part) for part in self._parts[1:]]
        for thread in others:
            thread.start()
        work(*self._parts[0])
        for thread in others:
            thread.join()


class Chain:
    """Cycle through the first ``size`` bytes of ``room``, a float64 array of :func:`aligned`.

    ``lines``: number of its cache lines."""

    def __init__(self, kernels: ctypes.CDLL, room: Any, size: int, seed: int) -> None:
        import numpy as np

        self.lines = size // LINE
        self._chase = kernels.chase
        self._base = room.ctypes.data
        self._order = np.random.RandomState(seed).permutation(self.lines)
        lines = room[: size // room.itemsize].view(np.int64).reshape(self.lines, -1)
        lines[self._order, 0] = self._base + LINE * np.roll(self._order, -1)
        self._steps = 0
        self._place = self._address(0)

    def _address(self, step: int) -> int:
        return int(self._base + LINE * self._order[step % self.lines])

    def run(self, steps: int) -> None:
        """Follow ``steps`` pointers, from where the last run ended."""
        self._place = self._chase(self._place, steps)
        self._steps += steps

    def check(self) -> None:
        """Raise Mismatch where the chain is not at the expected line."""
        expected = self._address(self._steps)
        if self._place != expected:
            raise Mismatch(
                f"{self._steps} steps through {self.lines} lines ended {self._place - expected} "
                "bytes from where they lead"
            )


def working_sets(largest: int) -> List[int]:
    """Return the sizes of a chain's working sets in bytes, whole cache lines: each twice the one
    before, and last ``largest``."""
    doubled = [SMALLEST]
    while 2 * doubled[-1] <= largest:
        doubled.append(2 * doubled[-1])
    return sorted({*doubled, max(SMALLEST, largest // LINE * LINE)})


def aligned(elements: int) -> Any:
    """Return an uninitialized array that starts at a cache line and lives as long as the process.
    Raises MemoryError."""
    import numpy as np

    allocate = ctypes.CDLL(None).malloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    address = allocate(_ITEM * elements + LINE)
    if not address:
        raise MemoryError(f"no {_ITEM * elements} bytes for an array")
    content: Any = (ctypes.c_double * elements).from_address(-(-address // LINE) * LINE)
    return np.frombuffer(content)


def most_bytes() -> int:
    """Return an eighth of the free memory, the most that arrays of a default size take together: a
    virtual machine may report the caches of its whole host."""
    total = control_groups.memory_bytes()
    return min(memory.available_bytes() or total, total) // 8


def largest_cache() -> int:
    """Return the bytes of all last-level caches; 0 where the kernel does not tell."""
    caches: Dict[str, List[int]] = {}
    for folder in glob.glob(_CACHES):
        level, size, shared = (
            file_line(os.path.join(folder, name)) for name in ("level", "size", "shared_cpu_list")
        )
        if level and size and shared:
            caches[f"{level} {shared}"] = [int(level), _bytes(size)]
    last = max((level for level, _ in caches.values()), default=0)
    return sum(size for level, size in caches.values() if level == last)


def _bytes(text: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
