"""Keys of ``framework.json``, with which a framework declares itself."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, Mapping, NamedTuple

#: Default seconds of a run besides its steps. "start": process start, imports and building a model;
#: "import": the part of it that is the same for any model; "train": in addition for training;
#: "compile": in addition for a compiler other than ``trained_with``.
START_SECONDS = {"start": 3.0, "import": 1.5, "train": 2.0, "compile": 3.0}
#: Execution without a compiler: each operation by itself, by a dispatcher made for that, or as a
#: graph that the framework always optimizes.
NONE_IS = ("op by op", "eager", "graph")
#: What a precision that a framework lacks on CPUs may depend on: axes, and the model's definition.
DEFINITION = "definition"
LACKING = ("precision", "compiler", "mode", DEFINITION)
REQUIRED = object()


class _Type(NamedTuple):
    allowed: str
    accepts: Callable[[Any], bool]


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)


def _is_seconds(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= set(START_SECONDS)
        and all(isinstance(entry, (int, float)) and entry >= 0 for entry in value.values())
    )


def _is_rates(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and set(value) <= {"train", "inference"}
        and all(isinstance(entry, dict) for entry in value.values())
        and all(
            isinstance(rate, (int, float)) and rate > 0
            for entry in value.values()
            for rate in entry.values()
        )
    )


def _is_processors(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(entry, dict)
        and set(entry) == {"vendor", "instruction_set"}
        and all(isinstance(text, str) for text in entry.values())
        for entry in value.values()
    )


def _is_capabilities(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(text, str) and re.match(r"^\d+\.\d+$", text) for text in value.values()
    )


def _is_lacks(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(entry, dict)
        and {"precision", "reason"} <= set(entry) <= {*LACKING, "reason"}
        and isinstance(entry["reason"], str)
        and all(_is_names(names) for axis, names in entry.items() if axis != "reason")
        for entry in value
    )


_NAMES = _Type("a list of names", _is_names)
_TEXT = _Type("a text", lambda value: isinstance(value, str))
_COMPILER = _Type("a name, or null", lambda value: value is None or isinstance(value, str))


class _Key(NamedTuple):
    type: _Type
    absent: Any = REQUIRED


_KEYS: Dict[str, _Key] = {
    "name": _Key(_TEXT),
    "title": _Key(_TEXT),
    "package": _Key(_TEXT),
    "compilers": _Key(_NAMES),
    "native_compiler": _Key(_COMPILER),
    "precisions": _Key(_NAMES),
    "none_is": _Key(_Type(", ".join(NONE_IS), lambda value: value in NONE_IS)),
    "none_means": _Key(_TEXT),
    "trained_with": _Key(_COMPILER, None),
    "parallelism": _Key(_NAMES, ()),
    "optimizers": _Key(_NAMES, ()),
    "no_stages": _Key(_TEXT, ""),
    "cpu_lacks": _Key(_Type(f"reasons, each with values of {', '.join(LACKING)}", _is_lacks), ()),
    "capability": _Key(_Type("compute capabilities by precision", _is_capabilities), {}),
    "start_seconds": _Key(_Type(f"seconds by {', '.join(START_SECONDS)}", _is_seconds), {}),
    "processors": _Key(_Type("vendor and instruction_set by compiler", _is_processors), {}),
    "slow_rates": _Key(
        _Type("rates by train or inference, and definition of the model", _is_rates), {}
    ),
}


def checked(declared: Any, folder: str) -> Dict[str, Any]:
    """Return the content of ``framework.json`` with the values of absent keys.

    ``folder``: name of the framework's folder. Raises ValueError for a missing key or wrong value.
    """
    if not isinstance(declared, Mapping):
        raise ValueError(f"found {declared!r:.80}; allowed: a JSON object")
    values = {**declared}
    for name, key in _KEYS.items():
        if values.setdefault(name, key.absent) is REQUIRED:
            needed = [text for text, known in _KEYS.items() if known.absent is REQUIRED]
            raise ValueError(f"key {name} is missing; it needs {', '.join(needed)}")
        if not key.type.accepts(values[name]):
            raise ValueError(f"{name}: found {values[name]!r:.80}; allowed: {key.type.allowed}")
    if values["name"] != folder:
        raise ValueError(f"name: found {values['name']!r:.80}; allowed: {folder}, its folder's")
    return values
