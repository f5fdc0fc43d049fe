"""Keys of ``framework.json``, with which a framework declares itself."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Tuple

from core.merging import read_object

#: Default seconds of a run besides its steps. "start": process start, imports and building a model;
#: "import": the part of it that is the same for any model; "train": in addition for training;
#: "compile": in addition for a compiler other than ``trained_with``.
START_SECONDS = {"start": 3.0, "import": 1.5, "train": 2.0, "compile": 3.0}
#: What a precision that a framework lacks on CPUs may depend on: axes, and the model's definition.
DEFINITION = "definition"
LACKING = ("precision", "compiler", "mode", DEFINITION)

_Form = Tuple[str, Callable[[Any], bool]]
_TEXT: _Form = ("a text", lambda value: isinstance(value, str))
_NAMES: _Form = (
    "a list of names",
    lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
)
_COMPILER: _Form = ("a name, or null", lambda value: value is None or isinstance(value, str))
_REASONS: _Form = (
    f"reasons, each with values of {', '.join(LACKING)}",
    lambda value: (
        isinstance(value, list)
        and all(isinstance(entry, dict) and "reason" in entry for entry in value)
    ),
)
_OBJECT: _Form = ("an object", lambda value: isinstance(value, dict))
_FASTER: _Form = (
    "cases, each with model, mode, compiler and percent",
    lambda value: (
        isinstance(value, list)
        and all(
            isinstance(entry, dict) and entry.keys() == {"model", "mode", "compiler", "percent"}
            for entry in value
        )
    ),
)
#: ``none_is``: execution without a compiler: each operation by itself, by a dispatcher made for
#: that, or as a graph that the framework always optimizes.
_REQUIRED: Dict[str, _Form] = {
    "name": _TEXT,
    "title": _TEXT,
    "package": _TEXT,
    "compilers": _NAMES,
    "native_compiler": _COMPILER,
    "precisions": _NAMES,
    "none_is": ("op by op, eager, graph", lambda value: value in ("op by op", "eager", "graph")),
    "none_means": _TEXT,
}
#: Keys that may be absent, with their values then.
_OPTIONAL: Dict[str, Tuple[_Form, Any]] = {
    "trained_with": (_COMPILER, None),
    "parallelism": (_NAMES, []),
    "optimizers": (_NAMES, []),
    "cpu_lacks": (_REASONS, []),
    "capability": (_OBJECT, {}),  # least compute capability by precision
    "start_seconds": (_OBJECT, {}),  # as START_SECONDS
    "processors": (_OBJECT, {}),  # vendor and instruction_set by compiler
    "slow_rates": (_OBJECT, {}),  # by train or inference, and definition of the model
    "official_faster": (_FASTER, []),  # by how much its official code is faster on a CPU, in fp32
}


def read(folder: str) -> Dict[str, Any]:
    """Return ``framework.json`` in a framework's folder, with the values of absent keys.

    Raises ValueError for a missing file, a missing key or a wrong value.
    """
    path = os.path.join(folder, "framework.json")
    declared = read_object(path)
    missing = [name for name in _REQUIRED if name not in declared]
    if missing:
        raise ValueError(f"{path}: key {missing[0]} is missing; it needs {', '.join(_REQUIRED)}")
    values = {**{name: absent for name, (_, absent) in _OPTIONAL.items()}, **declared}
    forms = {**_REQUIRED, **{name: form for name, (form, _) in _OPTIONAL.items()}}
    for name, (allowed, accepts) in forms.items():
        if not accepts(values[name]):
            raise ValueError(f"{path}: {name}: found {values[name]!r:.80}; allowed: {allowed}")
    expected = os.path.basename(folder)
    if values["name"] != expected:
        raise ValueError(f"{path}: name: found {values['name']!r:.80}; allowed: {expected}")
    return values
