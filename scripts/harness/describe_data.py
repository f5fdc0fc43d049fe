"""``python scripts/harness/describe_data.py``: how many samples trainings have, for a plan.

Reads from the standard input a list of ``{"model_config", "input", "sequence_length", "folder"}``.
Writes for each ``{"train": samples of an epoch, "held_out"}``, ``{"wrong": words}`` for a folder
that lacks what it must have, and null where it cannot be told; see ``learning/amounts.py``.
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
    from typing import Any, Dict

    from tasks import BadData

    from harness.learning.amounts import amounts
    from harness.samples import folder

    def described(one: Dict[str, Any]) -> Any:
        """Of one of the list."""
        asked = one["model_config"], one["input"], one["sequence_length"], one["folder"]
        try:
            found = amounts(*asked)
        except (BadData, folder.BadData, OSError) as error:
            return {"wrong": str(error)}
        return found._asdict() if found else None

    json.dump([described(one) for one in json.load(sys.stdin)], sys.stdout)
