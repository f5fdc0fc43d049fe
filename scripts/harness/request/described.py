"""Declarations of benchmarks, as JSON values."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from core import own_axes

from harness import kinds
from harness.kind import REQUIRED, Parameter, SearchKind

#: Texts of values, by parameter.
Texts = Mapping[str, Sequence[str]]


def describe(asked: Mapping[str, Texts], folder: Optional[str] = None) -> Dict[str, Any]:
    """Return the declaration of each benchmark.

    It is ``{"axes": axes of a case, "counts_steps", "parameters": {name: values of its texts, or
    the default}, "faults"}``. ``faults`` are ``{"key": parameter, "found": text, "allowed":
    text}``. A search without faults also has ``"expect"``: the expected runs with the first value
    of each parameter. An unknown benchmark gives ``{"known": [names of known ones]}``.
    """
    own_axes.load(folder)
    return {name: _described(name, texts, folder) for name, texts in asked.items()}


def _described(name: str, texts: Texts, folder: Optional[str]) -> Dict[str, Any]:
    try:
        kind = kinds.load(name, folder)
    except kinds.UnknownKind:
        return {"known": kinds.names(folder)}
    declared = {parameter.name: parameter for parameter in kind.parameters}
    allowed = ", ".join([*kind.all_axes, *declared])
    faults = [
        {"key": unknown, "found": "an unknown key", "allowed": allowed}
        for unknown in texts
        if unknown not in declared
    ]
    parameters = {
        name: _values(parameter, texts.get(name), faults) for name, parameter in declared.items()
    }
    described = {
        "axes": [*kind.all_axes],
        "counts_steps": kind.counts_steps,
        "parameters": parameters,
        "faults": faults,
    }
    if isinstance(kind, SearchKind) and not faults:
        first = {name: values[0] for name, values in parameters.items()}
        described["expect"] = kind.expected(first)
    return described


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
