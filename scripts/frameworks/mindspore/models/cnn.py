"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import networks
from harness.adapter import inputs as inputs
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Constant, Initializer, Normal, Uniform
from networks import Layer
from networks.schedule import flattened, schedule

Initials = Dict[str, Initializer]
INITIALIZERS: Dict[str, Callable[[float], Initializer]] = {
    "normal": Normal,
    "uniform": Uniform,
    "constant": Constant,
}


def convolution(layer: Layer, initials: Initials) -> nn.Cell:
    vertical, horizontal = layer.attributes["padding"]
    return nn.Conv2d(
        layer.in_shape.channels,
        layer.attributes["channels"],
        tuple(layer.attributes["kernel"]),
        stride=layer.attributes["stride"],
        pad_mode="pad",
        padding=(vertical, vertical, horizontal, horizontal),
        group=layer.attributes["groups"],
        has_bias=layer.attributes["bias"],
        weight_init=initials["weight"],
        bias_init=initials.get("bias"),
    )


def batch_norm(layer: Layer, initials: Initials) -> nn.Cell:
    return nn.BatchNorm2d(
        layer.shape.channels,
        eps=layer.attributes["epsilon"],
        momentum=1.0 - layer.attributes["momentum"],  # share of the old statistics
        gamma_init=initials["weight"],
        beta_init=initials["bias"],
    )


def linear(layer: Layer, initials: Initials) -> nn.Cell:
    return nn.Dense(
        layer.in_shape.channels,
        layer.attributes["features"],
        weight_init=initials["weight"],
        bias_init=initials.get("bias"),
        has_bias=layer.attributes["bias"],
    )


def dropout(layer: Layer, initials: Initials) -> nn.Cell:
    return nn.Dropout(p=layer.attributes["rate"])


def max_pool(layer: Layer, initials: Initials) -> nn.Cell:
    return nn.MaxPool2d(
        layer.attributes["kernel"],
        layer.attributes["stride"],
        pad_mode="pad",
        padding=layer.attributes["padding"],
        ceil_mode=layer.attributes["ceil"],
    )


def average_pool(layer: Layer, initials: Initials) -> nn.Cell:
    return nn.AvgPool2d(
        layer.attributes["kernel"],
        layer.attributes["stride"],
        pad_mode="pad",
        padding=layer.attributes["padding"],
        count_include_pad=True,
    )


def adaptive_average_pool(layer: Layer, initials: Initials) -> nn.Cell:
    return nn.AdaptiveAvgPool2d(layer.attributes["size"])


CELLS: Dict[str, Callable[[Layer, Initials], nn.Cell]] = {
    make.__name__: make
    for make in (
        *(convolution, batch_norm, linear, dropout),
        *(max_pool, average_pool, adaptive_average_pool),
    )
}


class GlobalAveragePool(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return ops.mean(x, (2, 3))


class Flatten(nn.Cell):
    def construct(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], -1)


class Concatenate(nn.Cell):
    def construct(self, *parts: Tensor) -> Tensor:
        return ops.cat(parts, 1)


class Channels(nn.Cell):
    def __init__(self, begin: int, end: int) -> None:
        super().__init__()
        self.begin, self.end = begin, end

    def construct(self, x: Tensor) -> Tensor:
        return x[:, self.begin : self.end]


class Shuffle(nn.Cell):
    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def construct(self, x: Tensor) -> Tensor:
        batch, channels, height, width = x.shape
        split = x.reshape(batch, self.groups, channels // self.groups, height, width)
        return split.swapaxes(1, 2).reshape(x.shape)


class Add(nn.Cell):
    def construct(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y


#: Operations without parameters.
OPERATIONS: Dict[str, Callable[..., nn.Cell]] = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "global_average_pool": GlobalAveragePool,
    "flatten": Flatten,
    "add": Add,
    "concatenate": Concatenate,
    "channels": Channels,
    "shuffle": Shuffle,
}


class CNN(nn.Cell):
    """Convolutional network: images (batch, channels, height, width) -> logits (batch, classes), in
    training followed by those of the auxiliary heads."""

    def __init__(self, network: networks.LayerGraph, training: bool) -> None:
        super().__init__()
        initials: Dict[str, Initials] = {}
        for name, weight in networks.weights(network).items():
            if weight.trained:
                holder, _, attribute = name.rpartition(".")
                distribution, value = weight.initial
                initials.setdefault(holder, {})[attribute] = INITIALIZERS[distribution](value)
        for layer in network.layers:
            if layer.op in CELLS:
                # insert_child_to_cell takes no dot
                self._cells[layer.name] = CELLS[layer.op](layer, initials.get(layer.name, {}))
        for name, shape in flattened(network).items():
            self._cells[name].flattened = shape
        plan = schedule(network, training)
        #: Cell, numbers of its inputs and of its output, and of what is not wanted afterwards.
        self.calls = [
            (
                self._cells[layer.name]
                if layer.op in CELLS
                else OPERATIONS[layer.op](**layer.attributes),
                *(tuple(call.inputs), call.output, tuple(call.freed)),
            )
            for call in plan.calls
            for layer in (call.layer,)
        ]
        self.places, self.outputs = plan.places, tuple(plan.outputs)

    def construct(self, images: Tensor) -> Tuple[Tensor, ...]:
        # images are held anyway; a list whose items change their shapes has no gradient in a graph
        values = (images,) * self.places
        for cell, sources, output, freed in self.calls:
            x = cell(*[values[number] for number in sources])
            values = values[:output] + (x,) + values[output + 1 :]
            for number in freed:
                values = values[:number] + (images,) + values[number + 1 :]
        return tuple([values[number] for number in self.outputs])


def build(model_config: Dict[str, Any], training: bool) -> nn.Cell:
    return CNN(networks.describe(model_config), training)


def loss(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> Tensor:
    """Return the mean cross-entropy of the logits, and of each auxiliary head times its weight."""
    logits, *heads = (ops.cross_entropy(output, batch["labels"]) for output in outputs)
    for head in heads:
        logits = logits + model_config["hyperparameters"]["auxiliary_weight"] * head
    return logits
