"""Convolutional networks from a description (``scripts/networks``): each layer is a call that is
prepared once, and the calls run in order."""

from __future__ import annotations

import operator
from typing import Any, Callable, Dict, List, Mapping, Tuple

import torch
import torch.nn.functional as F
from networks import Layer, LayerGraph, describe, weights
from networks.schedule import Call, Schedule, flattened, schedule
from torch import Tensor, nn

from .layers import ModelDefinition, initialized


class ConvolutionalNetwork(nn.Module):
    """Convolutional network: images (batch, 3, height, width) -> logits (batch, classes), in
    training followed by those of the auxiliary heads. Modules are nested by the dots in the layers'
    names."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        runs = {layer.name: OPERATIONS[layer.op](layer) for layer in network.layers}
        for name, run in runs.items():
            if isinstance(run, nn.Module):
                _nest(self, name, run)
        for name, images in flattened(network).items():
            runs[name].flattened = images
        modes = {training: schedule(network, training) for training in (True, False)}
        for call in modes[True].calls:
            if call.layer.op in ("relu", "relu6"):
                runs[call.layer.name].inplace = call.in_place
            elif call.layer.op == "add" and call.in_place:
                runs[call.layer.name] = operator.iadd
        self._modes = {training: _prepared(mode, runs) for training, mode in modes.items()}

    def forward(self, images: Tensor) -> Tuple[Tensor, ...]:
        calls, places, outputs = self._modes[self.training]
        tensors: List[Any] = [None] * places
        tensors[0] = images
        for run, inputs, output, freed in calls:
            tensors[output] = run(*[tensors[name] for name in inputs])
            for name in freed:
                tensors[name] = None
        return tuple([tensors[name] for name in outputs])


Prepared = Tuple[List[Tuple[Any, ...]], int, Tuple[int, ...]]


def _prepared(mode: Schedule, runs: Dict[str, Callable[..., Tensor]]) -> Prepared:
    """Return the layers with the indices of their inputs, output and freed buffers; the number
    of buffers; the indices of the outputs."""
    calls: List[Tuple[Any, ...]] = []
    for before, call in zip([None, *mode.calls], mode.calls):
        own = (runs[call.layer.name], call.inputs, call.output, call.freed)
        if before and _are_parts(before, call):
            sizes = [part.layer.channels for part in (before, call)]
            calls[-1:] = _split(sizes, before, call)
        else:
            calls.append(own)
    return calls, mode.places, mode.outputs


def _are_parts(first: Call, second: Call) -> bool:
    """Return whether two layers divide the same channels into two parts."""
    if not first.layer.op == second.layer.op == "channels" or first.inputs != second.inputs:
        return False
    ends = [0, first.layer.end, first.layer.end, first.layer.in_channels]
    return ends == [end for call in (first, second) for end in (call.layer.begin, call.layer.end)]


def _split(sizes: List[int], first: Call, second: Call) -> List[Tuple[Any, ...]]:
    """Return calls that compute two slices at once: after two slices, the backward pass would add
    two gradients that are mostly zero."""
    both = second.output
    return [
        (lambda x: x.split(sizes, 1), first.inputs, both, ()),
        (operator.itemgetter(0), (both,), first.output, first.freed),
        (operator.itemgetter(1), (both,), second.output, second.freed),
    ]


def _nest(root: nn.Module, name: str, module: nn.Module) -> None:
    *parents, attribute = name.split(".")
    for parent in parents:
        if parent not in root._modules:
            root.add_module(parent, nn.Module())
        root = root._modules[parent]
    root.add_module(attribute, module)


def _shuffle(layer: Layer) -> Callable[..., Tensor]:
    """Shuffle channels as (batch, height, width, channels), the layout of channels_last, without a
    copy."""

    groups = layer.groups

    def shuffle(x: Tensor) -> Tensor:
        split = x.permute(0, 2, 3, 1).unflatten(-1, (groups, -1))
        return split.transpose(-1, -2).flatten(-2).permute(0, 3, 1, 2)

    return shuffle


def _channels(layer: Layer) -> Callable[..., Tensor]:
    begin, end = layer.begin, layer.end
    return lambda x: x[:, begin:end]


#: Functions from a layer to the operation that computes it.
OPERATIONS: Dict[str, Callable[[Layer], Any]] = {
    "convolution": lambda layer: nn.Conv2d(
        layer.in_channels, layer.channels, *layer.window, groups=layer.groups, bias=layer.bias
    ),
    "batch_norm": lambda layer: nn.BatchNorm2d(layer.channels, layer.epsilon, layer.momentum),
    "linear": lambda layer: nn.Linear(layer.in_channels, layer.channels),
    "relu": lambda layer: nn.ReLU(),
    "relu6": lambda layer: nn.ReLU6(),
    "dropout": lambda layer: nn.Dropout(layer.rate),
    "max_pool": lambda layer: nn.MaxPool2d(*layer.window, ceil_mode=layer.ceil),
    "average_pool": lambda layer: nn.AvgPool2d(*layer.window),
    "adaptive_average_pool": lambda layer: nn.AdaptiveAvgPool2d(layer.size),
    "global_average_pool": lambda layer: lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1),
    "flatten": lambda layer: nn.Flatten(),
    "add": lambda layer: operator.add,
    "concatenate": lambda layer: lambda *inputs: torch.cat(inputs, 1),
    "channels": _channels,
    "shuffle": _shuffle,
}


class Definition(ModelDefinition):
    MEMORY_FORMAT = torch.channels_last

    def build(self) -> nn.Module:
        network = describe(self.model_config)
        model = initialized(ConvolutionalNetwork(network), weights(network))
        return model.to(memory_format=self.MEMORY_FORMAT)

    def inputs(self, batch: Mapping[str, Tensor]) -> Tuple[Tensor]:
        # batches viewed as (batch, channels, height, width) are channels_last already: no copy
        return (batch["images"].permute(0, 3, 1, 2),)
