"""Flattening of a record's nested values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Keys and list positions that lead to a value.
Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the path and value of each leaf: a scalar, or a list without mappings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for position, inner in enumerate(value):
            yield from leaves(inner, (*path, position))
    else:
        yield path, value
