"""Load the adapter of a framework's folder.

The folders' parent is not put on the path, where a folder ``mxnet`` would hide the framework of
that name.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import sys
from typing import Type

from harness.adapter import Adapter

PACKAGE = "framework_under_test"


def load_adapter(folder: str) -> Type[Adapter]:
    """Return the one subclass of :class:`Adapter` that ``folder/adapter.py`` defines.

    The folder becomes a package, so that an adapter can say ``from . import cnn``. Raises what
    importing it raises, and TypeError unless it defines exactly one."""
    spec = importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    module = importlib.import_module(PACKAGE + ".adapter")
    adapters = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, Adapter)
        and value.__module__.startswith(PACKAGE)
        and not inspect.isabstract(value)
    ]
    if len(adapters) != 1:
        raise TypeError(
            f"{folder}/adapter.py defines {len(adapters)} complete subclasses of Adapter, not 1"
        )
    return adapters[0]
