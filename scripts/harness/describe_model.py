"""Write the model config of a user's model for a plan: ``python scripts/harness/describe_model.py
MODEL``.

Writes ``{"found", "allowed"}`` for an invalid model; see ``request/own_model.py``.
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

    from harness.request.own_model import NotAModel, model_config

    try:
        described = model_config(sys.argv[1])
    except NotAModel as error:
        described = {"found": error.found, "allowed": error.allowed}
    json.dump(described, sys.stdout)
