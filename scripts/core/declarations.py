"""Declarations as JSON objects: model configs merged over their base, and the keys of
``framework.json``, with which a framework declares itself."""

from __future__ import annotations

import os
from typing import Any, Dict

from core import bounded

#: Default seconds of a run besides its steps. "start": process start, imports and building a model;
#: "import": the part of "start" that is the same for any model; "train": added for training;
#: "compile": added for a compiler other than ``trained_with``.
START_SECONDS = {"start": 3.0, "import": 1.5, "train": 2.0, "compile": 3.0}
#: Keys of a ``cpu_lacks`` entry (precisions missing on CPUs): axes, and the model's definition.
DEFINITION = "definition"
LACKING = ("precision", "compiler", "mode", DEFINITION)

#: ``none_is``: execution without a compiler: each operation by itself (``op by op``), by a
#: dispatcher made for that (``eager``), or as a ``graph`` that the framework always optimizes.
_REQUIRED = (
    *("name", "title", "package", "compilers", "native_compiler", "precisions"),
    *("none_is", "none_means"),
)
#: Optional keys, with their default values.
_OPTIONAL: Dict[str, Any] = {
    "trained_with": None,
    "parallelism": [],
    "optimizers": [],
    "cpu_lacks": [],  # reasons, each with the values of LACKING that it applies to
    "capability": {},  # least compute capability by precision
    "start_seconds": {},  # the same keys as START_SECONDS
    "slow_rates": {},  # operations per second, by mode and by definition of the model
    # model, mode, compiler, and percent by which the official code is faster (CPU, fp32)
    "official_faster": [],
}


def read_framework(folder: str) -> Dict[str, Any]:
    """Return ``framework.json`` in a framework's folder, with defaults for absent keys.

    Raises ValueError for a missing file, a missing key or another framework's name.
    """
    path = os.path.join(folder, "framework.json")
    values = {**_OPTIONAL, **read_object(path)}
    for name in _REQUIRED:
        if name not in values:
            raise ValueError(f"{path}: key {name} is missing; it needs {', '.join(_REQUIRED)}")
    expected = os.path.basename(folder)
    if values["name"] != expected:
        raise ValueError(f"{path}: name: found {values['name']!r:.80}; allowed: {expected}")
    return values


def read_object(path: str) -> Dict[str, Any]:
    """Return the JSON object in a file. Raises ValueError, which names the file, otherwise."""
    try:
        content = bounded.read_json(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: found {content!r:.80}; allowed: a JSON object")
    return content


def read_model_config(path: str, bases: str = "") -> Dict[str, Any]:
    """Return a model config merged over its ``base``, which may have its own base.

    ``bases``: folder of the bases, by default ``bases`` next to the file. Raises ValueError."""
    model_config = read_object(path)
    base = model_config.pop("base", None)
    if not base:
        return model_config
    bases = bases or os.path.join(os.path.dirname(path), "bases")
    return merge_patch(read_model_config(os.path.join(bases, f"{base}.json"), bases), model_config)


def merge_patch(base: Dict[str, Any], patch: Dict[str, Any]) -> Dict[str, Any]:
    """Return ``base`` with ``patch`` merged in, as a JSON merge patch (RFC 7396): null removes a
    key."""
    both = {
        key: merge_patch(base[key], value) if isinstance(value, dict) and key in base else value
        for key, value in patch.items()
    }
    return {key: value for key, value in {**base, **both}.items() if value is not None}
