"""Import hooks of frameworks: ``install`` in the module ``importing`` of a framework's folder,
which must not import the framework.

Some packages of its environment cannot be imported without it.
"""

from __future__ import annotations

import glob
import os
from importlib.util import module_from_spec, spec_from_file_location

_FRAMEWORKS = os.path.join(
    os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "frameworks"
)


def install() -> None:
    """Install the hooks of all frameworks; hooks of missing packages do nothing."""
    for path in sorted(glob.glob(os.path.join(_FRAMEWORKS, "*", "importing.py"))):
        spec = spec_from_file_location("importing", path)
        if spec and spec.loader:
            module = module_from_spec(spec)
            spec.loader.exec_module(module)
            module.install()
