"""Describe kinds of benchmarks for a plan: ``python scripts/harness/describe.py [FOLDER]``.

Reads ``{KIND: {PARAMETER: [TEXT, ..]}}`` from standard input: requested values. Writes for each
kind its declaration, the values as records have them, and errors in them; see
``request/described.py``. FOLDER: of further kinds.
"""

import os
import sys

# As in __main__.py: the modules beside this file are importable as `harness.NAME` only.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]

if __name__ == "__main__":
    import json

    from harness.request.described import describe

    # Output of the kinds' modules is not part of the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    json.dump(describe(json.load(sys.stdin), *sys.argv[1:]), answer)
