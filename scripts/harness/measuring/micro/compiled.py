"""C of the project's own, compiled by the machine's compiler when it is needed: Python has neither
loops over memory that are as fast, nor ones that wait for each load."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile

from harness.adapter import Unsupported

OPTIONS = ("-O3", "-march=native", "-fPIC", "-shared")


def library(source: str, name: str) -> ctypes.CDLL:
    """The kernels of ``name`` in the file ``source``. Raises Unsupported where there is no C
    compiler, or where it fails."""
    compiler = os.environ.get("CC") or "cc"
    if shutil.which(compiler) is None:
        raise Unsupported(
            f"no C compiler {compiler!r} for the kernels of {name}: install one (Debian: apt-get "
            "install gcc libc6-dev), or name one in CC"
        )
    with tempfile.TemporaryDirectory(prefix="framebench-kernels-") as folder:
        made = os.path.join(folder, "kernels.so")
        done = subprocess.run(
            [compiler, *OPTIONS, "-o", made, source],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode:
            why = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
            raise Unsupported(f"the C compiler {compiler!r} does not compile {name}: {why}")
        return ctypes.CDLL(made)
