"""Declarations as JSON objects, and model configs merged over their base."""

from __future__ import annotations

import os
from typing import Any, Dict

from core import bounded


def read_object(path: str) -> Dict[str, Any]:
    """Return the JSON object in a file. Raises ValueError, which names the file, for another."""
    try:
        content = bounded.read_json(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: found {content!r:.80}; allowed: a JSON object")
    return content


def read_model_config(path: str, bases: str = "") -> Dict[str, Any]:
    """Return a model config merged over its ``base``, which may have its own base.

    ``bases``: their folder, by default that next to the file. Raises ValueError."""
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
