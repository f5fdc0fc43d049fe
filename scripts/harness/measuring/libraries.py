"""Numeric and threading libraries of this process, the code paths that they selected, and which of
them multiplies.

Libraries linked into a framework itself are not listed; its adapter reports them. To ask which
library multiplies, a child process multiplies once while the libraries report what they do, which
would slow down anything that is timed. Standard library; numpy in the child.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any, Dict, Iterator, Optional, Set

from core.case import Case

from harness.adapter import RankContext
from harness.kind import Workload
from harness.measuring.loading import PACKAGE, load_adapter
from harness.processes.parent_death import signal_when_parent_dies

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


#: Variables that make oneDNN, its predecessors, MKL and OpenBLAS report.
VERBOSE = {
    "ONEDNN_VERBOSE": "1",
    "DNNL_VERBOSE": "1",
    "MKLDNN_VERBOSE": "1",
    "MKL_VERBOSE": "1",
    "OPENBLAS_VERBOSE": "2",
}
#: Line of the child after which the framework is loaded: numpy has an OpenBLAS of its own.
_BEGIN = "framebench: the framework is loaded now"
_LONGEST = 300
_SECONDS = 60
_SCRIPTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
_CHILD = f"import sys; sys.path[0] = {_SCRIPTS!r}; import {__name__} as one; one.multiply_once()"


def ask_matmul_library(workload: Workload, rank_context: RankContext, size: int) -> str:
    """Return library and code path of a matmul with ``size`` rows in the framework of this
    process; "" if the library does not tell."""
    spec = {
        "folder": next(iter(sys.modules[PACKAGE].__path__)),
        "case": workload.case._asdict(),
        "model_config": workload.model_config,
        "rank_context": asdict(rank_context),
        "size": size,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps(spec).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            env={**os.environ, **VERBOSE},
            check=False,
        )
        said = done.stdout
    except subprocess.TimeoutExpired as error:  # it hangs while it leaves
        said = error.stdout or b""
    except OSError:
        said = b""
    return parse_reports(said.decode("utf-8", "replace"))


def multiply_once() -> None:
    """Multiply once in the framework that standard input describes."""
    signal_when_parent_dies(signal.SIGKILL)
    import numpy as np

    with contextlib.suppress(ImportError):
        import scipy.linalg  # noqa: F401
    spec = json.load(sys.stdin)
    os.write(1, f"\n{_BEGIN}\n".encode())
    context = RankContext(**spec["rank_context"])
    made: Any = load_adapter(spec["folder"])
    adapter = made(Case.from_json(spec["case"]), spec["model_config"], context)
    adapter.start()
    square = np.ones((spec["size"], spec["size"]), np.float32)
    adapter.matmul(square, square).multiply()
    adapter.synchronize()


def parse_reports(text: str) -> str:
    """Return the library that multiplied, from the reports in ``text``; "" if none tells.

    oneDNN and MKL report each product; OpenBLAS only the core type for which it is loaded."""
    lines = text.rpartition(_BEGIN)[2].splitlines()
    return next((text for reason in (_onednn, _mkl, _openblas) for text in reason(lines)), "")[
        :_LONGEST
    ]


def _onednn(lines: Any) -> Iterator[str]:
    found = [line for line in lines if re.match(r"(onednn|dnnl|mkldnn)_verbose,", line)]
    text = "\n".join(found)
    ran = re.search(r",exec,(?:cpu,)?(?:matmul|inner_product|gemm\w*),([^,\n]+)", text)
    if ran:
        known = (re.search(r"info,([^,\n]*DNN v[\d.]+)", text), re.search(r"isa:([^\n]+)", text))
        yield ", ".join([*(match.group(1).strip() for match in known if match), ran.group(1)])


def _mkl(lines: Any) -> Iterator[str]:
    text = "\n".join(line for line in lines if line.startswith("MKL_VERBOSE "))
    about = re.search(r"^MKL_VERBOSE (.*MKL .*?), Lnx", text, re.MULTILINE)
    if about and re.search(r"^MKL_VERBOSE \w*GEMM\w*\(", text, re.MULTILINE):
        yield re.sub(r" Product build \d+ for Intel\(R\) 64 architecture", ",", about.group(1))


def _openblas(lines: Any) -> Iterator[str]:
    cores = [line.partition(": ")[2].strip() for line in lines if line.startswith("Core: ")]
    if cores:
        yield f"OpenBLAS, core type {cores[-1]}"
