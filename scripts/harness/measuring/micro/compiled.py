"""Compile the project's C kernels when they are needed. Python has no loops over memory that are as
fast, or that wait for each load."""

from __future__ import annotations

import ctypes
import os
import shutil
import tempfile

from core import programs

from harness.adapter import Unsupported

OPTIONS = ("-O3", "-march=native", "-fPIC", "-shared")


def library(source: str, name: str) -> ctypes.CDLL:
    """Return the compiled kernels of the file ``source``. Raises Unsupported without a C compiler,
    or where it fails.

    ``name``: what messages call the kernels."""
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise Unsupported(
            f"no C compiler {compiler!r} for the kernels of {name}: install one (Debian: apt-get "
            "install gcc libc6-dev), or name one in CC"
        )
    with tempfile.TemporaryDirectory(prefix="framebench-kernels-") as folder:
        target = os.path.join(folder, "kernels.so")
        done = programs.run([compiler, *OPTIONS, "-o", target, source])
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
            raise Unsupported(f"the C compiler {compiler!r} does not compile {name}: {reason}")
        return ctypes.CDLL(target)
