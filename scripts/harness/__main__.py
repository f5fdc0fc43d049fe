"""``python scripts/harness ..``: measure one run of one case and leave one record."""

import os
import sys

# Started as a folder, Python puts that folder on the path: its modules would be importable under
# their bare names and hide others. Only the package `harness` may be.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]

if __name__ == "__main__":
    from harness.launcher import main

    sys.exit(main(sys.argv[1:]))
