"""What a kind of measurement declares, as JSON has it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, Dict, Mapping, Optional, Sequence

from harness import kinds
from harness.adapter import Adapter, lacking_words
from harness.kind import REQUIRED, Kind, Parameter, Series
from harness.measuring.loading import PACKAGE, load_adapter

#: By parameter.
Texts = Mapping[str, Sequence[str]]
#: The project's, beside the harness.
FRAMEWORKS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "frameworks")


def describe(asked: Mapping[str, Texts], folder: Optional[str] = None) -> Dict[str, Any]:
    """For each kind ``{"axes": what of a case it has, "counts_steps", "lacking": {framework: what
    one that lacks a capability does not do}, "parameters": {name: the values that its texts stand
    for, or the default}, "faults"}``; ``faults`` are ``{"key": parameter, "found": text,
    "allowed": words}``. Of a series without faults also ``"expect"``: the runs to expect with the
    first value of each parameter. For one that is none, ``{"known": [names of those there
    are]}``."""
    return {name: _described(name, texts, folder) for name, texts in asked.items()}


def _described(name: str, texts: Texts, folder: Optional[str]) -> Dict[str, Any]:
    try:
        kind = kinds.load(name, folder)
    except kinds.UnknownKind:
        return {"known": kinds.names(folder)}
    declared = {parameter.name: parameter for parameter in kind.parameters}
    allowed = ", ".join([*kind.axes, *declared])
    faults = [
        {"key": unknown, "found": "an unknown key", "allowed": allowed}
        for unknown in texts
        if unknown not in declared
    ]
    parameters = {
        name: _values(parameter, texts.get(name), faults) for name, parameter in declared.items()
    }
    described = {
        "axes": [*kind.axes],
        "counts_steps": kind.counts_steps,
        "lacking": lacking(kind),
        "parameters": parameters,
        "faults": faults,
    }
    if isinstance(kind, Series) and not faults:
        first = {name: values[0] for name, values in parameters.items()}
        described["expect"] = kind.expected(first)
    return described


def lacking(kind: Kind, folder: str = FRAMEWORKS) -> Dict[str, str]:
    """Of each framework in ``folder`` whose adapter is not of the class that ``kind`` needs, what
    it does not do. One whose adapter cannot be read is not among them: its runs say why."""
    if kind.needs is None or kind.needs is Adapter:
        return {}
    found = {}
    for name in sorted(os.listdir(folder)):
        # else the adapter before it would stand for this one, too
        for module in [one for one in sys.modules if one.startswith(f"{PACKAGE}.")]:
            del sys.modules[module]
        with contextlib.suppress(Exception):
            if not issubclass(load_adapter(os.path.join(folder, name)), kind.needs):
                found[name] = f"{name} {lacking_words(kind.needs)}"
    return found


def _values(parameter: Parameter, texts: Optional[Sequence[str]], faults: Any) -> Sequence[Any]:
    if texts is None and parameter.default is REQUIRED:
        faults.append({"key": parameter.name, "found": "nothing", "allowed": parameter.help})
        return []
    if texts is None:
        return [parameter.default]
    values = []
    for text in texts:
        try:
            values.append(parameter.type(text))
        except ValueError as error:
            faults.append({"key": parameter.name, "found": repr(text), "allowed": str(error)})
    return values
