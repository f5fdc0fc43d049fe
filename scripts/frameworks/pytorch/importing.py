"""torchvision built for CUDA beside a PyTorch for CPUs, as package indexes mix them."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

#: Module that declares the shapes of torchvision's compiled operators.
_SHAPES = "torchvision._meta_registrations"


def install() -> None:
    """Let torchvision be imported where its compiled operators cannot be loaded, nor their shapes
    be declared. No classifier needs either."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return
    import torch  # here: environments are checked with the hooks of all frameworks

    try:
        torch.ops.load_library(os.path.join(os.path.dirname(found.origin), "_C.so"))
    except OSError:
        sys.modules.setdefault(_SHAPES, ModuleType(_SHAPES))
