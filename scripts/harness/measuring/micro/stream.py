"""The four kernels of STREAM (McCalpin, "Memory Bandwidth and Machine Balance in Current High
Performance Computers", 1995), counted as STREAM counts: each array that a kernel names is moved
once. `stream.c` beside this file is compiled when it is needed: NumPy has no triad in one pass.

The arrays come from the C library's allocator, as those of STREAM do. NumPy's own would lie in huge
pages wherever the kernel has some.
"""

from __future__ import annotations

import ctypes
import glob
import os
import threading
from typing import Any, Dict, List

from harness.measuring.micro.compiled import library

#: Arrays that each kernel moves.
MOVED = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
#: With it the kernels, one after the other, leave the arrays as they were: with STREAM's own 3 they
#: grow by 15 each time, until they overflow.
SCALAR = 2**0.5 - 1
_SOURCE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "stream.c")
_CACHES = "/sys/devices/system/cpu/cpu*/cache/index*"
LINE = 64  # bytes of a cache line, which no two threads share
_ITEM = 8  # bytes of a double


def compiled() -> ctypes.CDLL:
    """The kernels, as a library. Raises Unsupported where there is no C compiler, or where it
    fails."""
    kernels = library(_SOURCE, "STREAM")
    for name in MOVED:
        function = getattr(kernels, name)
        function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_double, ctypes.c_long]
        function.restype = None
    return kernels


class Stream:
    """Arrays a, b and c of float64 with ``elements`` each, shared out among as many threads. ``a``
    is random, b and c follow from it as if the kernels had run. Raises MemoryError."""

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
        """By the thread that uses it: memory of several nodes lies where it is written first."""
        import numpy as np

        self.a[start:end] = np.resize(self._random, end - start)
        self.b[start:end] = SCALAR * self.a[start:end]
        self.c[start:end] = 0

    def run(self, kernel: str) -> None:
        """``kernel`` in all threads."""
        function = getattr(self._kernels, kernel)
        bases = [array.ctypes.data for array in (self.a, self.b, self.c)]

        def work(start: int, end: int) -> None:
            function(*(base + _ITEM * start for base in bases), SCALAR, end - start)

        self._each(work)

    def _each(self, work: Any) -> None:
        others = [threading.Thread(target=work, args=part) for part in self._parts[1:]]
        for other in others:
            other.start()
        work(*self._parts[0])
        for other in others:
            other.join()


def aligned(elements: int) -> Any:
    """Uninitialised, at the beginning of a cache line, for as long as the process lives. Raises
    MemoryError."""
    import numpy as np

    allocate = ctypes.CDLL(None).malloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    place = allocate(_ITEM * elements + LINE)
    if not place:
        raise MemoryError(f"no {_ITEM * elements} bytes for an array")
    content: Any = (ctypes.c_double * elements).from_address(-(-place // LINE) * LINE)
    return np.frombuffer(content)


def largest_cache() -> int:
    """Bytes of all caches of the last level; 0 where the kernel does not tell."""
    found: Dict[str, List[int]] = {}
    for folder in glob.glob(_CACHES):
        try:
            level, size, shared = (
                _read(os.path.join(folder, name)) for name in ("level", "size", "shared_cpu_list")
            )
        except OSError:
            continue
        found[f"{level} {shared}"] = [int(level), _bytes(size)]
    last = max((level for level, _ in found.values()), default=0)
    return sum(size for level, size in found.values() if level == last)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read().strip()


def _bytes(text: str) -> int:
    units = {"K": 2**10, "M": 2**20, "G": 2**30}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)
