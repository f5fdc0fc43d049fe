"""Import modules in this environment: ``python scripts/harness/try_imports.py MODULE ..``.

The answer is JSON on standard output, apart from all that imported modules print, which goes to
standard error: {}, or ``{"found": what failed, and why}``.
"""

import contextlib
import glob
import importlib
import json
import os
import runpy
import sys
from typing import List

# Python puts this folder on the path, where its modules would hide others.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _HERE]
#: Module of a framework's folder with import hooks; without the framework, it does nothing.
_HOOKS = "importing.py"
#: Libraries of the GPU driver, which may be missing on machines that only build environments.
_OF_DRIVER = ("libcuda.so", "libnvidia-ml.so")


def failures(names: List[str]) -> List[str]:
    """Return which modules cannot be imported, with the errors."""
    failed = []
    # Some packages cannot be imported without the hooks of their framework.
    for path in sorted(glob.glob(os.path.join(os.path.dirname(_HERE), "frameworks", "*", _HOOKS))):
        with contextlib.suppress(Exception):  # the import below reports the error
            runpy.run_path(path)["install"]()
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            if not any(library in message for library in _OF_DRIVER):
                failed.append(f"import {name}: {message}")
    return failed


if __name__ == "__main__":
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    failed = failures(sys.argv[1:])
    json.dump({"found": "; ".join(failed)} if failed else {}, answer)
    answer.close()
    os._exit(0)  # some frameworks take seconds to end, or crash when they do
