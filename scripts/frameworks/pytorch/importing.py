"""Import a torchvision built for CUDA next to a PyTorch for CPUs, as package indexes may mix
them."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType

#: Module that declares the shapes of torchvision's compiled operators.
_SHAPES = "torchvision._meta_registrations"


def install() -> None:
    """Allow torchvision's import where its compiled operators cannot be loaded and their shapes
    cannot be declared. No classifier needs them."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return
    import torch  # not above: environments without PyTorch are checked with this hook, too

    try:
        torch.ops.load_library(os.path.join(os.path.dirname(found.origin), "_C.so"))
    except OSError:
        sys.modules.setdefault(_SHAPES, ModuleType(_SHAPES))
