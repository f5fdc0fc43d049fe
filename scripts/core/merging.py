"""Model configs merged over their base."""

from __future__ import annotations

from typing import Any, Dict


def merge_patch(base: Dict[str, Any], patch: Dict[str, Any]) -> Dict[str, Any]:
    """Return ``base`` with ``patch`` merged in, as a JSON merge patch (RFC 7396): null removes a
    key."""
    both = {
        key: merge_patch(base[key], value) if isinstance(value, dict) and key in base else value
        for key, value in patch.items()
    }
    return {key: value for key, value in {**base, **both}.items() if value is not None}
