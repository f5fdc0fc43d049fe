"""Measure one run of one case and write one record: ``python scripts/harness ..``."""

import os
import sys

# Python puts the folder that it runs on the path. Its modules would be importable by their bare
# names and hide others; only the package `harness` may be importable.
_HERE = os.path.dirname(os.path.realpath(__file__))
# The user's PYTHONPATH goes last, so that its modules do not hide the standard library.
_LAST = {os.path.realpath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep)}
_OTHERS = [entry for entry in sys.path if os.path.realpath(entry) != _HERE]
_OTHERS.sort(key=lambda entry: os.path.realpath(entry) in _LAST)
sys.path[:] = [os.path.dirname(_HERE), *_OTHERS]

if __name__ == "__main__":
    from core.text import accept_any_text

    from harness.launcher import main

    accept_any_text()
    sys.exit(main(sys.argv[1:]))
