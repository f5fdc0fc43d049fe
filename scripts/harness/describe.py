"""``python scripts/harness/describe.py [FOLDER]``: what kinds of measurement are, for a plan.

Reads from the standard input ``{KIND: {PARAMETER: [TEXT, ..]}}``: the values that somebody wants to
measure with. Writes for each kind what it declares, the values as they will stand in records, and
what is wrong with them; see ``request/described.py``. FOLDER: of further kinds.
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

    # What the modules of kinds print is no part of the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    json.dump(describe(json.load(sys.stdin), *sys.argv[1:]), answer)
