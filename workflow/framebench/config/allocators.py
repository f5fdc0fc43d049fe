"""Allocators that a variant can preload: ``scripts/allocators.json``, also read by the harness."""

from __future__ import annotations

import ctypes.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from ..files import json_files
from .validation import NotAllowed

_FILE = Path(__file__).parents[3] / "scripts" / "allocators.json"


@cache
def known() -> Mapping[str, Mapping[str, str]]:
    """Return ``library`` and Debian ``package`` of each allocator, by name."""
    results: dict[str, dict[str, str]] = json_files.read(_FILE)
    return results


def _allocator(written: str) -> str:
    if written in known() or Path(written).is_absolute():
        return written
    raise NotAllowed(f"{', '.join(known())}, or the absolute path of a library")


Allocator = Annotated[str, AfterValidator(_allocator)]


def missing(allocator: str) -> str:
    """Return what this machine lacks for an allocator; "" if it is installed."""
    if allocator not in known():
        return "" if Path(allocator).is_file() else "a library that is there"
    library = known()[allocator]
    if ctypes.util.find_library(library["library"]):
        return ""
    return f"with lib{library['library']}.so, which Debian has in the package {library['package']}"
