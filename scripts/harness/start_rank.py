"""Start one rank, described by the environment: ``python scripts/harness/start_rank.py SPEC.json``.
Without a spec: fork ranks on request.

The launcher here, or a scheduler elsewhere, sets RANK, LOCAL_RANK, WORLD_SIZE and
FRAMEBENCH_ADDRESSES, and FRAMEBENCH_CORES to pin the rank.
"""

import os
import sys

# As in __main__.py, the modules next to this file are importable as `harness.NAME` only.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]

if __name__ == "__main__":
    from core.text import accept_any_text

    from harness.rank import main, serve

    accept_any_text()
    sys.exit(main(sys.argv[1]) if sys.argv[1:] else serve())
