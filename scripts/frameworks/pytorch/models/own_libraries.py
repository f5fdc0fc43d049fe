"""Classifiers of images from torchvision and timm, without trained weights, each with a batch and a
loss as a user's file has them."""

from __future__ import annotations

import importlib
from functools import partial
from typing import Any, Dict, Sequence, Tuple

import torch
from harness.adapter import Unsupported
from torch import Tensor, nn

from .. import importing


class Classifier:
    """Classifier with the function ``make`` of a user's file, and a memory format."""

    MEMORY_FORMAT = torch.channels_last

    def __init__(self, declaration: Dict[str, Any]) -> None:
        library, _, self._name = declaration["source"].partition(":")
        self._new = partial(_torchvision_model, torchvision_models())
        if library == "timm":  # timm imports torchvision, too
            self._new = partial(_timm_model, _imported("timm"))

    def make(self, batch_size: int) -> Any:
        model, shape, classes = self._new(self._name)
        images = torch.randn(batch_size, *shape)
        labels = torch.randint(classes, (batch_size,))
        return model, (images, labels), self._loss

    def _loss(self, outputs: Any, labels: Tensor) -> Tensor:
        if isinstance(outputs, tuple):
            raise Unsupported(f"{self._name} has auxiliary heads: measure it from a file")
        return nn.functional.cross_entropy(outputs, labels)


def _torchvision_model(models: Any, name: str) -> Tuple[nn.Module, Sequence[int], int]:
    weights = models.get_model_weights(name).DEFAULT
    size = getattr(weights.transforms(), "crop_size", None)
    if "categories" not in weights.meta or not size:
        raise Unsupported(f"{name} is not a classifier of images: measure it from a file")
    classes = len(weights.meta["categories"])
    return models.get_model(name, weights=None), (3, size[0], size[-1]), classes


def _timm_model(timm: Any, name: str) -> Tuple[nn.Module, Sequence[int], int]:
    model = timm.create_model(name, pretrained=False)
    return model, model.pretrained_cfg["input_size"], model.num_classes


def torchvision_models() -> Any:
    """Return the module ``torchvision.models``. Raises Unsupported where it is not installed."""
    importing.install()
    return _imported("torchvision").models


def _imported(library: str) -> Any:
    try:
        return importlib.import_module(library)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise Unsupported(f"{library} is not installed in this environment") from None
