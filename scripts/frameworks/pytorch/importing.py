"""torchvision built for CUDA beside a PyTorch for CPUs, as package indexes mix them: its compiled
operators are not loaded then, and the module that declares their shapes cannot be imported. No
classifier needs either."""

from __future__ import annotations

import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any, Optional, Sequence

_SHAPES = "torchvision._meta_registrations"


class _Empty(Loader):
    """Makes a module without content."""

    def exec_module(self, module: ModuleType) -> None: ...


class _WithoutOperators(MetaPathFinder):
    """Finds an empty module in the place of the shapes of operators that are not loaded."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[Any]] = None, target: Any = None
    ) -> Optional[ModuleSpec]:
        if fullname != _SHAPES:
            return None
        has_operators = getattr(sys.modules.get("torchvision.extension"), "_has_ops", None)
        if has_operators is None or has_operators():
            return None
        return spec_from_loader(fullname, _Empty())


def install() -> None:
    """Make torchvision importable without its compiled operators, for all later imports in this
    process."""
    if not any(isinstance(finder, _WithoutOperators) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WithoutOperators())
