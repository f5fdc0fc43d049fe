"""Try imports in a new environment: ``python scripts/harness/try_imports.py MODULE ..``.

Writes ``{}`` where all modules can be imported, else ``{"found": ..}``.
"""

import os
import sys

# As in __main__.py: the modules beside this file are importable as `harness.NAME` only.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]
#: Libraries of a GPU's driver, which may be missing on machines that only build environments.
_OF_DRIVER = ("libcuda.so", "libnvidia-ml.so")

if __name__ == "__main__":
    import contextlib
    import importlib
    import json

    from harness import hooks

    failed = []
    with contextlib.redirect_stdout(sys.stderr):
        hooks.install()
        for name in sys.argv[1:]:
            try:
                importlib.import_module(name)
            except (Exception, SystemExit) as error:
                message = " ".join(f"{type(error).__name__}: {error}".split())
                if not any(library in message for library in _OF_DRIVER):
                    failed.append(f"import {name}: {message}")
    sys.stdout.write("\n" + json.dumps({"found": "; ".join(failed)} if failed else {}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # some frameworks take seconds to end, or crash when they do
