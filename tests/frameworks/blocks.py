"""Blocks of the described networks, each as a small network. They cover layers and connections that
the two made-up networks (``all_blocks``, ``connections``) lack.

A block is cut out of a network's description and made small. Each of its inputs gets a preceding
layer (convolution, batch normalisation, ReLU), which shows the gradients that the block hands back;
a linear layer that reads every value follows it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import networks
from networks import IMAGES, Layer, LayerGraph
from networks.layers import Layers
from reference import compute

from .cnns import CNNS, connections, counted


class Block(NamedTuple):
    """A block of a network.
    ``layers``: pattern that matches the whole name of each of its layers in the small description
    of ``model`` with changed ``hyperparameters``; ``size``: size of the images, with different
    edges that are not multiples, where that matters; ``rate``: learning rate."""

    model: str
    layers: str
    size: tuple[int, int] = (6, 5)
    hyperparameters: Mapping[str, Any] = {}
    #: A linear layer over every value learns fast: with a higher rate most losses vanish.
    rate: float = 4e-4


#: Width factor of Inception: in the small whole network, layers would have a single channel.
WIDE = {"width": 0.0625}
#: MnasNet whose blocks all have kernels of size 5.
FIVES = {"stages": [[5, 2, 3, 2, 16]]}

#: Fields of a listed layer besides its name and inputs.
TAKES = (
    *("kernel", "stride", "padding", "ceil", "groups", "bias", "channels", "features", "size"),
    *("begin", "end"),
)
#: ResNets of two stages, wider than the small ones.
STAGES = {"blocks": [1, 2], "width": 16}

BLOCKS = {
    "ResNet's first layers": Block(
        "resnet50", "conv1|bn1|relu|maxpool", (23, 20), STAGES, rate=2e-4),
    "grouped bottleneck, halving": Block(
        "resnext50_32x4d", r"layer2\.0\..*", hyperparameters=STAGES),
    "transition between dense blocks": Block("densenet121", r"features\.transition1\..*"),
    "inverted residual of 5x5": Block("mnasnet0_5", r"layers\.8\.1\..*", hyperparameters=FIVES),
    "inverted residual of 5x5, halving": Block(
        "mnasnet0_5", r"layers\.8\.0\..*", hyperparameters=FIVES),
    "shuffle": Block("shufflenet_v2_x0_5", r"stage2\.1\..*"),
    "SqueezeNet's first layers": Block("squeezenet1_0", r"features\.[012]", (21, 22)),
    "SqueezeNet's classifier": Block("squeezenet1_0", r"classifier\..*"),
    "GoogLeNet's pool": Block("googlenet", "maxpool4"),
    "Inception's first layers": Block(
        "inception_v3", r"Conv2d_2[ab]_3x3\..*|maxpool1", (11, 8), WIDE),
    "inception B": Block("inception_v3", r"Mixed_6a\..*", hyperparameters=WIDE),
    "inception E": Block("inception_v3", r"Mixed_7b\..*", hyperparameters=WIDE),
    "Inception's auxiliary head": Block("inception_v3", r"AuxLogits\..*", (20, 17), WIDE),
    "AlexNet's first layers": Block("alexnet", r"features\.[012]", (35, 31)),
}  # fmt: skip


def block_config(name: str) -> dict[str, Any]:
    block = BLOCKS[name]
    model_config = compute.reduced(CNNS[block.model])
    model_config["hyperparameters"].update(block.hyperparameters)
    layers = list(_alone(networks.describe(model_config), block))
    hyper = {**model_config["hyperparameters"], "family": "layers", "layers": layers}
    verification = {**model_config["verification"]["hyperparameters"], "learning_rate": block.rate}
    drops = any(layer["op"] == "dropout" and layer.get("key") == "dropout" for layer in layers)
    for given in (hyper, verification):
        if not drops:  # a rate makes the verification compare statistics of dropout
            given.pop("dropout", None)
    images, labels = model_config["inputs"]
    images = {**images, "shape": ["batch", *block.size, 3]}
    model_config.update(name=name, inputs=[images, labels], hyperparameters=hyper)
    model_config["verification"] = {**model_config["verification"], "hyperparameters": verification}
    del model_config["reduced_from"]
    return counted(model_config)


def _alone(network: LayerGraph, block: Block) -> Iterator[dict[str, Any]]:
    own = [layer for layer in network.layers if re.fullmatch(block.layers, layer.name)]
    names = {layer.name for layer in own}
    widths = {IMAGES: 3, **{layer.name: layer.shape.channels for layer in network.layers}}
    sources = dict.fromkeys(text for layer in own for text in layer.inputs if text not in names)
    for source in sources:
        yield {"op": "convolution", "name": f"{source}.conv", "inputs": [IMAGES], "kernel": 1,
               "channels": widths[source]}  # fmt: skip
        yield {"op": "batch_norm", "name": f"{source}.bn"}
        yield {"op": "relu", "name": f"{source}.in"}
    heads = set(network.outputs[1:]) & names
    for layer in own:
        inputs = [text if text in names else f"{text}.in" for text in layer.inputs]
        given = {**_listed(layer, network), "inputs": inputs}
        yield {**given, "head_begins": own[0].name} if layer.name in heads else given
    last = own[-1].name
    if last == network.outputs[0]:
        return
    (behind,) = [f"{source}.in" for source in sources] if heads else [last]
    yield {"op": "flatten", "name": "flat", "inputs": [behind]}
    yield {"op": "linear", "name": "logits", "features": 10}


def _listed(layer: Layer, network: LayerGraph) -> dict[str, Any]:
    """Return a layer in the notation of the family ``layers``."""
    takes = set(inspect.signature(getattr(Layers, layer.op)).parameters) & set(TAKES)
    given = {key: layer.channels if key == "features" else getattr(layer, key) for key in takes}
    if layer.op == "dropout":
        given["key"] = "auxiliary_dropout" if layer.name in network.auxiliary else "dropout"
    return {"op": layer.op, "name": layer.name, **given}


def kinds(network: LayerGraph) -> set[tuple[Any, ...]]:
    """Return the properties of layers, other than widths, that an interpreter must distinguish."""
    return {kind for layer in network.layers for kind in kinds_of_layer(layer)}


def kinds_of_layer(layer: Layer) -> Iterator[tuple[Any, ...]]:
    """Yield the properties other than widths that an interpreter of networks must distinguish."""
    yield layer.op, *layer.window, layer.ceil
    if layer.op == "convolution":
        depthwise = layer.groups == layer.in_channels
        grouping = "whole" if layer.groups == 1 else "depthwise" if depthwise else "grouped"
        yield grouping, layer.stride, layer.kernel if layer.groups > 1 else None
        yield ("convolution", "bias" if layer.bias else "no bias")


def properties(model_config: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """Return the kinds of layers and connections of the network of ``model_config``."""
    network = networks.describe(model_config)
    return kinds(network) | connections(network)


def smallest(names: Iterable[str]) -> list[str]:
    """Return the network with the fewest parameters for each set of properties when small.
    Networks with equal properties differ only in depth or width."""
    by_size = sorted(names, key=lambda name: -int(CNNS[name]["trainable_parameters"]))
    last = {frozenset(properties(compute.reduced(CNNS[name]))): name for name in by_size}
    return sorted(last.values())


def write_block_references(folder: Path) -> None:
    for name in BLOCKS:
        compute.write(block_config(name), None, 0, folder / name)
