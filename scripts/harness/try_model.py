"""Try a user's model in a framework's environment: ``python scripts/harness/try_model.py MODEL``.

Writes ``{}`` where its imports, or its name in a library, exist there, else ``{"found",
"allowed"}``; see ``request/own_imports.py``.
"""

import os
import sys

# As in __main__.py: the modules beside this file are importable as `harness.NAME` only.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]

if __name__ == "__main__":
    import contextlib
    import json

    from harness.request.own_imports import check
    from harness.request.own_model import NotAModel

    error_parts = {}
    with contextlib.redirect_stdout(sys.stderr):
        try:
            check(sys.argv[1])
        except NotAModel as error:
            error_parts = {"found": error.found, "allowed": error.allowed}
    sys.stdout.write("\n" + json.dumps(error_parts) + "\n")
    sys.stdout.flush()
    os._exit(0)  # some frameworks take seconds to end, or crash when they do
