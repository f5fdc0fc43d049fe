"""torchvision's own code of the networks that ``scripts/networks`` describes, under the same names,
as the other side of an A/B test with ours (``cnn.py``)."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import torch
from harness.adapter import Unsupported
from networks import LayerGraph, describe, weights
from networks.schedule import flattened
from torch import Tensor, nn

from .. import cnn
from ..own_libraries import torchvision_models

MEMORY_FORMAT = cnn.MEMORY_FORMAT
inputs, loss = cnn.inputs, cnn.loss


def network(name: str, classes: int) -> nn.Module:
    """Return torchvision's network of that name as it is, with its own initial values. Raises
    Unsupported where it has none."""
    library = torchvision_models()
    if name not in library.list_models(module=library):
        raise Unsupported(f"torchvision has no network {name}")
    options = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    built: nn.Module = library.get_model(name, weights=None, num_classes=classes, **options)
    return built


def build(model_config: Dict[str, Any]) -> nn.Module:
    """Build torchvision's network with the hyper-parameters of the model config: images (batch, 3,
    height, width) -> logits (batch, classes), in training followed by those of the auxiliary heads.
    Raises Unsupported for a network that torchvision lacks, for example one that was made small."""
    described = describe(model_config)
    model = network(model_config["name"], model_config["hyperparameters"]["classes"])
    adapt(model, described)
    model.register_forward_hook(lambda module, images, outputs: logits_of(outputs))
    return model.to(memory_format=MEMORY_FORMAT)


def adapt(model: nn.Module, described: LayerGraph) -> None:
    """Give torchvision's ``model`` the rates, epsilons and momenta of the description, and what
    :func:`harness.adapter.state_of_modules` needs. Raises Unsupported where they are not the same
    network."""
    expected = {name: _size(weight.shape) for name, weight in weights(described).items()}
    sizes = {name: array.numel() for name, array in model.state_dict().items()}
    own = {name: size for name, size in sizes.items() if not name.endswith("num_batches_tracked")}
    dropouts = [layer for layer in described.layers if layer.op == "dropout"]
    theirs = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    if own != expected or len(theirs) != len(dropouts):
        raise Unsupported("torchvision has the network in its own size alone")
    for module, layer in zip(theirs, dropouts):
        module.p = layer.rate
    for layer in described.layers:
        if layer.op == "batch_norm":
            norm: Any = model.get_submodule(layer.name)
            norm.eps, norm.momentum = layer.epsilon, layer.momentum
    for name, images in flattened(described).items():
        model.get_submodule(name).flattened = images


def _size(shape: Tuple[int, ...]) -> int:
    return torch.Size(shape).numel()


def logits_of(outputs: Any) -> Tuple[Tensor, ...]:
    """Return logits and those of the auxiliary heads, the first head of the network first:
    torchvision has a tensor, or in training a tuple with the last head first."""
    if isinstance(outputs, Tensor):
        return (outputs,)
    logits, *heads = outputs
    return (logits, *reversed(heads))
