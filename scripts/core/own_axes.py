"""A user's axes: a list ``AXES`` in ``axes.py`` in the folder that ``kinds:`` names."""

from __future__ import annotations

import importlib.util
import os
import re
from typing import Optional

from core import axes
from core.case import Case

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_FILE = "axes.py"


def register(axis: axes.Axis) -> None:
    """Add a user's axis.

    Raises ValueError for a taken or malformed name, and for an axis without a default.
    """
    if not _NAME.fullmatch(axis.name):
        raise ValueError(f"axis {axis.name!r}; allowed: lower-case letters, digits and _")
    if hasattr(Case, axis.name) or axis.name in ("mode", "kind", "status", "metric", "repeat"):
        raise ValueError(f"axis {axis.name!r}, which exists; allowed: any other name")
    if axis.default is None:
        raise ValueError(f"axis {axis.name!r} without a default; allowed: one, for older records")
    axes.REGISTERED[axis.name] = axis


def load(folder: Optional[str]) -> None:
    """Register the axes of ``folder``/axes.py, if there is such a file.

    Raises ValueError for an axis that cannot be registered, and all that importing it raises.
    """
    path = os.path.join(folder, _FILE) if folder else ""
    if not os.path.isfile(path):
        return
    spec = importlib.util.spec_from_file_location("axes_elsewhere", path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for axis in module.AXES:
        register(axis)
