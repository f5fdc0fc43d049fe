"""Which numeric library multiplies in a framework.

A child process multiplies once while the libraries report what they do, which would slow down
anything that is timed. Standard library; numpy in the child.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict
from typing import Any, Iterator

from core.case import Case

from harness.adapter import RankContext
from harness.kind import Workload
from harness.measuring.loading import PACKAGE, load_adapter
from harness.processes.parent_death import signal_when_parent_dies

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
    case = Case.from_json(spec["case"])
    adapter: Any = load_adapter(spec["folder"], case, spec["model_config"], context)
    adapter.start()
    square = np.ones((spec["size"], spec["size"]), np.float32)
    adapter.layer_matmul(square, square).run()
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
