"""Start one node of a run with several: ``srun .. python scripts/harness/start_node.py FOLDER``.

The launcher has it started on every node at once, with the folder that they share.
"""

import os
import sys

# As in __main__.py: the modules beside this file are importable as `harness.NAME` only.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]

if __name__ == "__main__":
    from core.text import accept_any_text

    from harness.nodes.nodes import main

    accept_any_text()
    sys.exit(main(sys.argv[1]))
