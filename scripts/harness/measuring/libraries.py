"""Numeric and threading libraries of this process, and the code paths they selected.

Libraries linked into a framework itself are not included; its adapter reports them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from typing import Dict, Optional, Set

_NUMERIC = re.compile(
    r"^lib(\w*blas|mkl|blis|flame|lapack|dnnl|mkldnn|iomp|gomp|omp|armpl|arm_compute"
    r"|cudnn|cusolver|nccl)"
)
_CORE_NAMES = [
    f"{prefix}openblas_get_corename{suffix}" for prefix in ("", "scipy_") for suffix in ("", "64_")
]
#: oneDNN's dnnl_cpu_isa_t.
_ISA = {
    0x01: "sse41",
    0x03: "avx",
    0x07: "avx2",
    0x0F: "avx2_vnni",
    0x1F: "avx2_vnni_2",
    0x27: "avx512_core",
    0x67: "avx512_core_vnni",
    0xE7: "avx512_core_bf16",
    0x1EF: "avx512_core_fp16",
    0xFEF: "avx512_core_amx",
    0x1FEF: "avx512_core_amx_fp16",
}


def _mapped(maps: str) -> Set[str]:
    """Return the paths of the numeric libraries that a process has mapped."""
    paths = set()
    with contextlib.suppress(OSError), open(maps, errors="replace", encoding="utf-8") as file:
        for line in file:
            path = line.rstrip("\n").split(None, 5)[5:]
            if path and _NUMERIC.match(os.path.basename(path[0])):
                paths.add(path[0])
    return paths


def _code_path(path: str) -> Optional[str]:
    """Return the processor name that a loaded library selected its code for, or None if unknown."""
    try:
        # NOLOAD: only the library that is already loaded.
        library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return None
    for name in _CORE_NAMES:
        core = getattr(library, name, None)
        if core is not None:
            core.restype = ctypes.c_char_p
            return (core() or b"").decode("ascii", "replace") or None
    isa = getattr(library, "dnnl_get_effective_cpu_isa", None)
    if isa is not None:
        number = int(isa())
        return _ISA.get(number, hex(number))
    return None


def in_use(maps: str = "/proc/self/maps") -> Dict[str, Optional[str]]:
    """Return the code path of each library by path; None where unknown. Paths inside
    ``site-packages`` are relative to it."""
    return {
        path.rpartition("/site-packages/")[2]: _code_path(path) for path in sorted(_mapped(maps))
    }
