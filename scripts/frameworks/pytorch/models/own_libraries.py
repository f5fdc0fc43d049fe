"""Classifiers of images from torchvision and timm, without trained weights, each with a batch and a
loss as a user's file has them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any, Dict, Sequence, Tuple

import torch
from harness.adapter import Unsupported
from torch import Tensor, nn

#: Module that declares the shapes of torchvision's compiled operators.
_SHAPES = "torchvision._meta_registrations"


class Classifier:
    """Classifier with the function ``make`` of a user's file, and a memory format."""

    MEMORY_FORMAT = torch.channels_last

    def __init__(self, declaration: Dict[str, Any]) -> None:
        self._name = declaration["source"].partition(":")[2]
        self._models, self._new = torchvision_models(), self._of_torchvision  # timm needs it, too
        if declaration["library"] == "timm":
            self._models, self._new = _imported("timm"), self._of_timm

    def make(self, batch_size: int) -> Any:
        model, shape, classes = self._new()
        images = torch.randn(batch_size, *shape)
        labels = torch.randint(classes, (batch_size,))
        return model, (images, labels), self._loss

    def _of_torchvision(self) -> Tuple[nn.Module, Sequence[int], int]:
        weights = self._models.get_model_weights(self._name).DEFAULT
        size = getattr(weights.transforms(), "crop_size", None)
        if "categories" not in weights.meta or not size:
            raise Unsupported(f"{self._name} is no classifier of images: measure it from a file")
        model = self._models.get_model(self._name, weights=None)
        return model, (3, size[0], size[-1]), len(weights.meta["categories"])

    def _of_timm(self) -> Tuple[nn.Module, Sequence[int], int]:
        model = self._models.create_model(self._name, pretrained=False)
        return model, model.pretrained_cfg["input_size"], model.num_classes

    def _loss(self, outputs: Any, labels: Tensor) -> Tensor:
        if isinstance(outputs, tuple):
            raise Unsupported(f"{self._name} has auxiliary heads: measure it from a file")
        return nn.functional.cross_entropy(outputs, labels)


def allow_torchvision() -> None:
    """Let torchvision be imported beside a PyTorch for CPUs where it is built for CUDA, as package
    indexes mix them. Its operators cannot be loaded then, nor their shapes be declared; no
    classifier needs either."""
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None:
        return
    try:
        torch.ops.load_library(os.path.join(os.path.dirname(found.origin), "_C.so"))
    except OSError:
        sys.modules.setdefault(_SHAPES, ModuleType(_SHAPES))


def torchvision_models() -> Any:
    """Return the module ``torchvision.models``. Raises Unsupported where it is not installed."""
    allow_torchvision()
    return _imported("torchvision").models


def _imported(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise Unsupported(f"{library} is not installed in this environment") from None
