"""Answer a question of the driver: ``python scripts/harness/describe.py QUESTION [ARGUMENT ..]``.

Questions are the functions below. The answer is JSON on standard output, apart from all that
imported modules print, which goes to standard error.
"""

import os
import sys
from typing import Any, Dict, List, Optional

# As in __main__.py: the modules beside this file are importable as `harness.NAME` only.
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [os.path.dirname(_HERE)] + [
    entry for entry in sys.path if os.path.realpath(entry) != _HERE
]
#: Libraries of a GPU's driver, which may be missing on machines that only build environments.
_OF_DRIVER = ("libcuda.so", "libnvidia-ml.so")


def kinds(folder: Optional[str] = None) -> Any:
    """Return declarations of benchmarks, including a user's own in ``folder``.

    Standard input: requested values, ``{KIND: {PARAMETER: [TEXT, ..]}}``. A declaration is
    ``{"axes": axes of a case, "counts_steps", "parameters": {name: values of its texts, or the
    default}, "faults"}``. ``faults`` are ``{"key": parameter, "found": text, "allowed": text}``.
    An unknown benchmark gives ``{"known": [names of known ones]}``.
    """
    import json

    from core import own_axes

    own_axes.load(folder)
    return {name: _kind(name, texts, folder) for name, texts in json.load(sys.stdin).items()}


def _kind(name: str, texts: Any, folder: Optional[str]) -> Any:
    from harness import kinds
    from harness.kind import ParameterError

    try:
        kind = kinds.load(name, folder)
    except kinds.UnknownKind:
        return {"known": kinds.names(folder)}
    answer = {"axes": [*kind.all_axes], "counts_steps": kind.counts_steps, "faults": []}
    try:
        answer["parameters"] = kind.read_parameters(texts)
    except ParameterError as error:
        known = [parameter.name for parameter in kind.parameters]
        allowed = error.allowed if error.name in known else ", ".join([*kind.all_axes, *known])
        fault = {"key": error.name, "found": error.found, "allowed": allowed}
        return {**answer, "parameters": {}, "faults": [fault]}
    return answer


def model(source: str) -> Any:
    """Return the model config of a user's model; ``{"found", "allowed"}`` for an invalid one."""
    from harness.request.own_model import NotAModel, model_config

    try:
        return model_config(source)
    except NotAModel as error:
        return {"found": error.found, "allowed": error.allowed}


def data() -> Any:
    """Return the samples of trainings.

    Standard input: a list of ``{"model_config", "input", "sequence_length", "folder"}``. Each has
    ``{"train": samples of an epoch, "held_out"}``, ``{"wrong": message}`` for an incomplete folder,
    or null where the number is unknown; see ``learning/amounts.py``.
    """
    import json

    from tasks import TaskError

    from harness.learning.amounts import amounts
    from harness.samples import folder

    def described(entry: Dict[str, Any]) -> Any:
        asked = entry["model_config"], entry["input"], entry["sequence_length"], entry["folder"]
        try:
            found = amounts(*asked)
        except (TaskError, folder.BadData, OSError) as error:
            return {"wrong": str(error)}
        return found._asdict() if found else None

    return [described(entry) for entry in json.load(sys.stdin)]


def try_imports(*names: str) -> Any:
    """Return {} where all modules can be imported in this environment, else ``{"found": ..}``."""
    import importlib

    from harness import hooks

    failed: List[str] = []
    hooks.install()
    for name in names:
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            message = " ".join(f"{type(error).__name__}: {error}".split())
            if not any(library in message for library in _OF_DRIVER):
                failed.append(f"import {name}: {message}")
    return {"found": "; ".join(failed)} if failed else {}


if __name__ == "__main__":
    import json

    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    questions = {item.__name__: item for item in (kinds, model, data, try_imports)}
    json.dump(questions[sys.argv[1]](*sys.argv[2:]), answer)
    answer.close()
    os._exit(0)  # some frameworks take seconds to end, or crash when they do
