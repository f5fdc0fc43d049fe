"""Kinds of benchmarks, one module each, found by name."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
import zlib
from typing import List, Optional

from harness.kind import Kind

_HERE = os.path.dirname(os.path.realpath(__file__))


class UnknownKind(Exception):
    """Raised for an unknown kind; the message names the known ones."""


def names(folder: Optional[str] = None) -> List[str]:
    """Return the names of all benchmarks: of the project, and in ``folder``."""
    files = {name for place in (_HERE, folder) if place for name in _modules(place)}
    return sorted(files)


def load(name: str, folder: Optional[str] = None) -> Kind:
    """Return the kind ``name``, preferably from ``folder``.

    Raises :class:`UnknownKind`, TypeError where its module does not define exactly one kind, and
    what importing it raises."""
    if folder and name in _modules(folder):
        module = importlib.import_module(f"{_package(folder)}.{name}")
    elif name in _modules(_HERE):
        module = importlib.import_module(f"{__name__}.{name}")
    else:
        raise UnknownKind(f"no kind {name!r}; there are: {', '.join(names(folder))}")
    kinds = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Kind)
        and value.__module__ == module.__name__
    ]
    if len(kinds) != 1:
        raise TypeError(f"{module.__file__} defines {len(kinds)} kinds, not 1")
    return kinds[0]()


def _modules(folder: str) -> List[str]:
    try:
        files = os.listdir(folder)
    except OSError as error:
        raise UnknownKind(f"cannot look for kinds in {folder}: {error.strerror}") from None
    return [file[:-3] for file in files if file.endswith(".py") and not file.startswith("_")]


def _package(folder: str) -> str:
    """Make the folder a package, so that its modules hide no others."""
    name = f"kinds_in_{zlib.crc32(folder.encode()):08x}"
    if name not in sys.modules:
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [folder]
        sys.modules[name] = importlib.util.module_from_spec(spec)
    return name
