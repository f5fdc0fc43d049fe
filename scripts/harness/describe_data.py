"""Count the samples of trainings for a plan: ``python scripts/harness/describe_data.py``.

Reads a list of ``{"model_config", "input", "sequence_length", "folder"}`` from standard input.
Writes for each ``{"train": samples of an epoch, "held_out"}``, ``{"wrong": message}`` for an
incomplete folder, and null where the number is unknown; see ``learning/amounts.py``.
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

    from tasks import TaskError

    from harness.learning.amounts import amounts
    from harness.samples import folder

    def described(entry: Dict[str, Any]) -> Any:
        """Return the answer for one entry of the list."""
        asked = entry["model_config"], entry["input"], entry["sequence_length"], entry["folder"]
        try:
            data_amounts = amounts(*asked)
        except (TaskError, folder.BadData, OSError) as error:
            return {"wrong": str(error)}
        return data_amounts._asdict() if data_amounts else None

    json.dump([described(request) for request in json.load(sys.stdin)], sys.stdout)
