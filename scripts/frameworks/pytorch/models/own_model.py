"""A user's own model as a definition: from a file, or an image classifier from torchvision or timm
without trained weights, for which this module has what a user's file declares: batch and loss."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import partial
from typing import Any, Dict, List, Sequence, Tuple

import torch
from harness.adapter import (
    FLOAT64,
    Case,
    Mismatch,
    OwnDefinition,
    RankContext,
    Unsupported,
    Variable,
)
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.parameter import is_lazy
from torch.utils._pytree import register_dataclass, tree_leaves, tree_map, tree_map_only

from .. import devices, importing

#: Names of other libraries' dropout layers, with the attribute that has the rate.
DROPPING = {"StochasticDepth": "p", "DropPath": "drop_prob"}


class Whole(nn.Module):
    """Module around ``model`` that takes its inputs one after the other."""

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        super().__init__()
        self.model, self.names = model, tuple(names)

    def forward(self, *inputs: Any) -> Any:
        named = dict(zip(self.names, inputs))
        return self.model(**named) if named else self.model(*inputs)


class Flat(Tuple[Tensor, ...]):
    """All tensors among a model's outputs; ``nest``: the outputs as the model returned them."""

    nest: Any


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


class Definition(OwnDefinition):
    OPTIMIZERS, LIBRARY = torch.optim.Optimizer, "torch.optim"

    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        importing.install()  # the user's file, or what it imports, may import torchvision
        super().__init__(case, model_config, rank_context)

    def _take(self, source: Any) -> None:
        super()._take(source)
        self.MEMORY_FORMAT = getattr(source, "MEMORY_FORMAT", torch.contiguous_format)

    def _library_model(self) -> Any:
        return Classifier(self._own)

    def _first(self, inputs: Any) -> Any:
        leaves = tree_leaves(dict(inputs) if isinstance(inputs, Mapping) else inputs)
        return next((leaf for leaf in leaves if isinstance(leaf, Tensor)), None)

    def inputs(self, batch: Mapping[str, Any]) -> Tuple[Any, ...]:
        """Return the inputs of this rank; keep its targets for :meth:`loss`."""
        torch.manual_seed(int(batch["seed"]))
        _, inputs, targets, _ = self._made()
        self._targets = tree_map(self._on_device, targets)
        self._names, several = _one_by_one(inputs)
        self._inputs: Tuple[Any, ...] = tree_map(self._on_device, several)
        return self._inputs

    def _on_device(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        dtype = value.dtype
        if self.case.precision == FLOAT64:
            dtype = devices.dtype_of(value, torch.float64)
        return value.to(
            self.rank_context.accelerator,  # the current device is the rank's own
            dtype,
            memory_format=self.MEMORY_FORMAT if value.dim() == 4 else torch.preserve_format,
        )

    def build(self) -> nn.Module:
        model, inputs, _, loss = self._made()
        if not isinstance(model, nn.Module):
            raise TypeError(f"make returned {type(model).__name__} as the model, not a Module")
        if self.case.mode == "train" and not any(
            parameter.requires_grad for parameter in model.parameters()
        ):
            raise TypeError("make returned a model without trainable parameters")
        if not self._own.get("dropout", True):
            without_dropout(model)
        if any(map(is_lazy, model.parameters())):  # the first pass gives lazy modules their shapes
            with torch.no_grad():
                Whole(model.eval(), self._names)(*_one_by_one(inputs)[1])
        if isinstance(loss, nn.Module):  # the loss may have weights of classes
            loss.to(self.rank_context.accelerator)
            if self.case.precision == FLOAT64:
                loss.double()
        self._loss = loss
        return Whole(model.to(memory_format=self.MEMORY_FORMAT), self._names)

    def loss(self, outputs: Flat, batch: Any) -> Tensor:
        """Return the user's loss, from outputs in float32 at least, like those of our models."""
        nest = outputs.nest
        if any(_widened(output) is not output for output in outputs):
            nest = tree_map_only(Tensor, _widened, nest)
        value = self._loss(nest, self._targets)
        if not isinstance(value, Tensor) or value.dim():
            raise TypeError("the loss must be a tensor with one number")
        return value

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """Return the optimizer of the user's file, or the default one."""
        hyper = self.model_config["hyperparameters"]
        # not fused: fused SGD fails where a parameter gets its first gradient later than others
        return self._own_optimizer(model.parameters()) or torch.optim.SGD(
            model.parameters(), lr=hyper["learning_rate"], momentum=hyper["momentum"]
        )

    def flat(self, outputs: Any) -> Flat:
        """Return the tensors among ``outputs``. Raises :class:`Mismatch` where there is none."""
        leaves = tree_leaves(outputs)
        unknown = {type(leaf) for leaf in leaves if is_dataclass(leaf)}
        for kind in unknown:
            register_dataclass(kind)
        if unknown:
            return self.flat(outputs)
        result = Flat(devices.real(leaf) for leaf in leaves if isinstance(leaf, Tensor))
        if not result:
            raise Mismatch(
                f"the model returns {type(outputs).__name__} without a tensor; allowed: a tensor, "
                "or tuples, lists, dictionaries and dataclasses of them"
            )
        result.nest = outputs
        return result

    def state(self, model: nn.Module) -> Dict[str, Variable]:
        """Return the state in the model's own layout, because it is compared with no other
        framework."""
        named = (*model.named_parameters(), *model.named_buffers())
        return {
            name: Variable(devices.real(tensor), trainable=tensor.requires_grad)
            for name, tensor in named
            if tensor.is_floating_point() or tensor.is_complex()
        }

    def arrays(self) -> List[Any]:
        """Return this rank's inputs and targets."""
        tensors = tree_leaves((self._inputs, self._targets))
        return [_widened(tensor).cpu().numpy() for tensor in tensors if isinstance(tensor, Tensor)]


def _one_by_one(inputs: Any) -> Tuple[List[str], Tuple[Any, ...]]:
    """Return the names of the inputs, if they have names, and the inputs."""
    if isinstance(inputs, Mapping):
        return list(inputs), tuple(inputs.values())
    return [], (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() and tensor.itemsize < 4 else tensor


def without_dropout(model: nn.Module) -> None:
    """Set the rate of all dropout layers to 0."""
    for layer in model.modules():
        if isinstance(layer, _DropoutNd):
            layer.p = 0.0
        elif isinstance(layer, (nn.MultiheadAttention, nn.RNNBase)):
            layer.dropout = 0.0
        elif type(layer).__name__ in DROPPING:
            setattr(layer, DROPPING[type(layer).__name__], 0.0)
