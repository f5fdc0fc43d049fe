"""Bandwidth of the host's memory by the kernels of STREAM, compiled when needed (McCalpin, "Memory
Bandwidth and Machine Balance in Current High Performance Computers", 1995).

To measure one core, run one device with one core. To measure all cores, run one device per core;
each has its own arrays, and all start together. Bandwidth counts each array that a kernel names
once. No framework. Standard library and numpy.

The kernels are in C (`memory.c` next to this file): Python has no loops over memory that are as
fast, or that wait for each load. Arrays come from the C library's allocator, as STREAM's do.
NumPy's arrays would lie in huge pages wherever the kernel has some."""

from __future__ import annotations

import ctypes
import glob
import os
import shutil
import tempfile
import threading
from functools import partial
from typing import Any, Dict, Iterator, List

from core import limits, programs

from harness.adapter import Mismatch, Unsupported
from harness.hardware import file_line
from harness.kind import TOPOLOGY, Context, Metric, Parameter, Workload, at_least
from harness.measuring import blocks
from harness.measuring.checks import check_cores
from harness.measuring.sweep import Block, GridPoint, Sweep, bandwidth
from harness.processes.descendants import available_bytes

#: Arrays that each kernel of STREAM moves.
MOVED = {"copy": 2, "scale": 2, "add": 3, "triad": 3}
#: Scalar with which the four kernels restore the arrays. STREAM's own 3 multiplies the arrays by 15
#: each time, until they overflow.
SCALAR = 2**0.5 - 1
_ARRAYS = 3  # number of arrays on each device
#: Largest relative error of the arrays: a hundred times STREAM's own bound.
ROUNDING = 1e-11
#: Default size of the largest array or working set, relative to the last-level cache, as STREAM's
#: rules demand.
TIMES_CACHE = 4
LINE = 64  # bytes of a cache line, which no two threads share
ITEM = 8  # bytes of a double
_OPTIONS = ("-O3", "-march=native", "-fPIC", "-shared")
_CACHES = "/sys/devices/system/cpu/cpu*/cache/index*"


class Memory(Sweep):
    """Host memory: bytes per second of copy, scale, add and triad, summed over all devices."""

    needs = None
    names_points = False
    axes = TOPOLOGY
    parameters = (
        Parameter(
            "array_bytes", at_least(0), "bytes",
            f"bytes of each array of a device; 0: all arrays together are {TIMES_CACHE} times the "
            "last-level cache, but at most an eighth of the free memory", 0,
        ),
        Parameter(
            "rounds", at_least(2), "", "runs of the four kernels; the first is not counted", 11
        ),
    )  # fmt: skip

    def grid(self, workload: Workload) -> List[GridPoint]:
        return [GridPoint({}, None)]  # the kernels take turns

    def figures(self, workload: Workload, subject: None) -> Dict[str, Metric]:
        return {
            kernel: Metric("GB/s", "higher", "sum", bandwidth, at={"kernel": kernel})
            for kernel in ("triad", "copy", "scale", "add")
        }

    def run(self, context: Context, subject: None) -> Iterator[Block]:
        fields, parameters = context.fields, context.workload.parameters
        fields["last_cache_bytes"] = largest_cache()
        devices = context.workload.case.devices_per_node
        default = partial(default_bytes, "array_bytes", _ARRAYS)
        size = parameters["array_bytes"] or default() // devices
        threads = fields["threads"] = max(1, len(check_cores(context.cores)))
        kernels = context.phase("compile", compiled)
        held = Stream(kernels, max(1, size // ITEM), threads, blocks.random_of(context))
        before = held.a.copy()
        seconds: Dict[str, List[float]] = {kernel: [] for kernel in MOVED}
        context.barrier()
        for _ in range(parameters["rounds"]):
            for kernel, durations in seconds.items():
                durations.append(blocks.elapsed(partial(held.run, kernel)))
        held.check(before)
        for kernel, (_, *durations) in seconds.items():
            timed = {"operations": 1, "bytes": MOVED[kernel] * held.a.nbytes}
            yield {"part": {"kernel": kernel}, "seconds": durations, **timed}


class Stream:
    """Float64 arrays a, b and c with ``elements`` each, split among ``threads``.

    ``a`` is random; b and c follow from it as if the kernels had run. Raises MemoryError."""

    def __init__(self, kernels: Any, elements: int, threads: int, random: Any) -> None:
        self._kernels = kernels
        self.a, self.b, self.c = (aligned(elements) for _ in range(_ARRAYS))
        per_line = LINE // ITEM
        ends = [elements * number // threads // per_line * per_line for number in range(threads)]
        self._parts = list(zip(ends, [*ends[1:], elements]))
        self._random = random.uniform(1, 2, min(elements, 65536))
        self._each(self._fill)

    def _fill(self, start: int, end: int) -> None:
        """Fill a part in the thread that uses it, because memory is placed on the node that first
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
            function(*(base + ITEM * start for base in bases), SCALAR, end - start)

        self._each(work)

    def _each(self, work: Any) -> None:
        """Call ``work`` for each part, in a thread of its own."""
        others = [threading.Thread(target=work, args=part) for part in self._parts[1:]]
        for thread in others:
            thread.start()
        work(*self._parts[0])
        for thread in others:
            thread.join()

    def check(self, before: Any) -> None:
        """Raise Mismatch where the arrays differ from the results of correct kernels. ``before``:
        initial values of the first array."""
        for name, factor in {"a": 1, "b": SCALAR, "c": 1 + SCALAR}.items():
            actual, expected = getattr(self, name), factor * before
            wrong = ~(abs(actual - expected) <= ROUNDING * expected)
            if wrong.any():
                raise Mismatch(f"{int(wrong.sum())} of {actual.size} elements of {name} are wrong")


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
    return min(TIMES_CACHE * cache, min(available_bytes() or total, total) // 8 // arrays)


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
