"""Nested facts of a record, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Keys and positions.
Path = tuple[str | int, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Each value that holds no mapping, with the keys and positions that lead to it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for position, inner in enumerate(value):
            yield from leaves(inner, (*path, position))
    else:
        yield path, value
