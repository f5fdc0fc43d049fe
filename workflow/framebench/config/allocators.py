"""Allocators that a variant can preload: ``scripts/allocators.json``, also read by the harness."""

from __future__ import annotations

import ctypes.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from ..files import json_files
from .fields import AllowedValues, ReadAs, Text
from .validation import NotAllowed

FILE = Path(__file__).parents[3] / "scripts" / "allocators.json"


@cache
def known() -> Mapping[str, Mapping[str, str]]:
    """Return ``library`` and Debian ``package`` of each allocator, by name."""
    results: dict[str, dict[str, str]] = json_files.read(FILE)
    return results


_ALLOWED = f"{', '.join(known())}, or the absolute path of a library"


def _allocator(written: str) -> str:
    if written in known() or Path(written).is_absolute():
        return written
    raise NotAllowed(_ALLOWED)


Allocator = Annotated[str, ReadAs(Text, _allocator), AllowedValues(_ALLOWED)]


def missing(allocator: str) -> str:
    """Return what this machine lacks for an allocator; "" if it is installed."""
    if allocator not in known():
        return "" if Path(allocator).is_file() else "a library that is there"
    library = known()[allocator]
    if ctypes.util.find_library(library["library"]):
        return ""
    return f"with lib{library['library']}.so, which Debian has in the package {library['package']}"
