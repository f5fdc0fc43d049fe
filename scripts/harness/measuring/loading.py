"""Load the adapter of a framework's folder.

The folders' parent is not put on the path, where a folder ``mxnet`` would hide the framework of
that name.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import sys
from typing import Any, Dict

from harness.adapter import Adapter, Case, RankContext

PACKAGE = "framework_under_test"


def load_environment(folder: str) -> Any:
    """Make the ``folder`` a package, so that its modules can use ``from . import cnn``. Return its
    module ``environment``, None where it has none."""
    spec = importlib.machinery.ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [folder]
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    if not os.path.exists(os.path.join(folder, "environment.py")):
        return None
    return importlib.import_module(PACKAGE + ".environment")


def load_adapter(
    folder: str, case: Case, model_config: Dict[str, Any], rank_context: RankContext
) -> Adapter:
    """Import a framework and return its adapter of a case: the one subclass of :class:`Adapter`
    that ``folder/adapter.py`` defines.

    Before that, ``prepare`` of the folder's module ``environment``, if there is one, makes settings
    that the framework reads when it is imported. Raises any error of the import, and TypeError
    unless the module defines exactly one."""
    environment = load_environment(folder)
    if environment is not None:
        environment.prepare(case, rank_context)
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
    return adapters[0](case, model_config, rank_context)
