"""Models of torchvision, timm and transformers with random weights, each with a batch and a loss
as a user's file has them."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import sys
from types import ModuleType
from typing import Any, Dict, Sequence, Tuple

import torch
from harness.adapter import Unsupported
from torch import Tensor, nn

#: Tokens of a text.
TOKENS = 128
#: Module that declares the shapes of torchvision's compiled operators.
_SHAPES = "torchvision._meta_registrations"


def library_model(declaration: Dict[str, Any], train: bool) -> Any:
    """Return an object with the function ``make`` of a user's file, and a memory format."""
    return (
        TransformersModel(declaration, train)
        if declaration["library"] == "transformers"
        else Classifier(declaration)
    )


class Classifier:
    """A classifier of images from torchvision or timm, without trained weights."""

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


class TransformersModel:
    """A model of texts or images from transformers, of its class's default configuration or a
    ``config.json``, without trained weights. The loss is the one that the class computes from
    labels."""

    MEMORY_FORMAT = torch.contiguous_format

    def __init__(self, declaration: Dict[str, Any], train: bool) -> None:
        self._own, self._train = declaration, train
        values = json.loads(declaration["text"]) if declaration["text"] else {}
        self._name = (
            values["architectures"][0] if values else declaration["source"].partition(":")[2]
        )
        self._class = getattr(_imported("transformers"), self._name)
        self._values = values

    def make(self, batch_size: int) -> Any:
        config = self._class.config_class.from_dict(self._values)
        config.use_cache = False  # of the tokens generated before; a step has none
        text = config.get_text_config()
        if self._name.endswith("ForSequenceClassification") and text.pad_token_id is None:
            text.pad_token_id = 0  # decoders look for the last token by it
        if not self._own.get("dropout", True):
            _without_dropout(config)
        model = self._class(config)
        inputs = self._inputs(config, batch_size)
        if self._train:
            inputs.update(self._labels(model, inputs, batch_size))
        return model, (inputs, ()), lambda outputs, _: outputs.loss

    def _inputs(self, config: Any, batch: int) -> Dict[str, Tensor]:
        """Return a random batch of tokens or images, as the class takes them."""
        text, name = config.get_text_config(), self._class.main_input_name
        if name == "input_ids":
            positions = getattr(text, "max_position_embeddings", TOKENS)
            names = [name, "decoder_input_ids"][: 1 + config.is_encoder_decoder]
            shape: Tuple[int, ...] = (batch, min(TOKENS, positions))
            return {name: torch.randint(text.vocab_size, shape) for name in names}
        if name == "pixel_values":
            size = getattr(config, "image_size", 224)
            edges = size if isinstance(size, (list, tuple)) else (size, size)
            return {name: torch.randn(batch, getattr(config, "num_channels", 3), *edges)}
        raise Unsupported(f"{self._name} takes {name}, not texts or images: measure it from a file")

    def _labels(self, model: nn.Module, inputs: Dict[str, Tensor], batch: int) -> Dict[str, Tensor]:
        """Return random labels, of the shape of the logits of one sample."""
        logits = None
        if "labels" in inspect.signature(model.forward).parameters:
            with torch.no_grad():
                one = model.eval()(**{name: value[:1] for name, value in inputs.items()})
            logits = getattr(one, "logits", None)
        if logits is None:
            raise Unsupported(
                f"{self._name} computes no loss from one label per sample or token: train it from "
                "a file"
            )
        return {"labels": torch.randint(logits.shape[-1], (batch, *logits.shape[1:-1]))}


def _without_dropout(config: Any) -> None:
    """Set all dropout rates in a configuration of transformers to 0."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "get_text_config"):
            _without_dropout(value)
        elif "drop" in name and isinstance(value, float):
            setattr(config, name, 0.0)


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
