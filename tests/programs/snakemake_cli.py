"""Double of ``snakemake.cli``: prints the variables that it got from the caller."""

from __future__ import annotations

import ctypes
import getpass
import importlib
import os
import sys


def main() -> None:
    print(importlib.import_module("other").__file__, *sys.argv[1:])
    print(getpass.getuser())
    print(sorted({"LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONINSPECT"} & {*os.environ}))
    ctypes.CDLL("libresolv.so.2")
