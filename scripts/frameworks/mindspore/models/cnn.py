"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import networks
from harness.adapter import Definition as Base
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Constant, Initializer, Normal, Uniform
from networks import Layer
from networks.schedule import flattened, schedule

INITIALIZERS: Dict[str, Callable[[float], Initializer]] = {
    "normal": Normal,
    "uniform": Uniform,
    "constant": Constant,
}


def drawn(initial: networks.Initial) -> Initializer:
    distribution, value = initial
    return INITIALIZERS[distribution](value)


def convolution(layer: Layer) -> nn.Cell:
    vertical, horizontal = layer.padding
    return nn.Conv2d(
        layer.in_channels,
        layer.channels,
        tuple(layer.kernel),
        stride=layer.stride,
        pad_mode="pad",
        padding=(vertical, vertical, horizontal, horizontal),
        group=layer.groups,
        has_bias=layer.bias,
        weight_init=drawn(layer.initial),
        bias_init=drawn(layer.initial_bias) if layer.bias else None,
    )


def batch_norm(layer: Layer) -> nn.Cell:
    momentum = 1.0 - layer.momentum  # MindSpore's momentum is the share of the old statistics
    return nn.BatchNorm2d(layer.channels, eps=layer.epsilon, momentum=momentum)


def linear(layer: Layer) -> nn.Cell:
    initials = {"weight_init": drawn(layer.initial), "bias_init": drawn(layer.initial_bias)}
    return nn.Dense(layer.in_channels, layer.channels, **initials)


def average_pool(layer: Layer) -> nn.Cell:
    options = {"pad_mode": "pad", "padding": layer.padding, "count_include_pad": True}
    return nn.AvgPool2d(layer.kernel, layer.stride, **options)


class MaxPool(nn.Cell):
    """Maximum pooling. With ``pad_mode="pad"`` MindSpore pools in three dimensions: five times as
    long on a CPU, though its gradient takes less time. So inference pads by itself."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.padding = layer.padding
        options = {"pad_mode": "pad", "padding": layer.padding, "ceil_mode": layer.ceil}
        self.padded = nn.MaxPool2d(layer.kernel, layer.stride, **options)
        self.valid = nn.MaxPool2d(layer.kernel, layer.stride, pad_mode="valid")
        self.is_valid = not any(layer.extra)

    def construct(self, x: Tensor) -> Tensor:
        if self.training or not self.is_valid:
            return self.padded(x)
        if self.padding:
            batch, channels, height, width = x.shape
            edge = ops.full((batch, channels, self.padding, width), -float("inf"), dtype=x.dtype)
            x = ops.cat((edge, x, edge), 2)
            height += 2 * self.padding
            edge = ops.full((batch, channels, height, self.padding), -float("inf"), dtype=x.dtype)
            x = ops.cat((edge, x, edge), 3)
        return self.valid(x)


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


CELLS: Dict[str, Callable[[Layer], nn.Cell]] = {
    "convolution": convolution,
    "batch_norm": batch_norm,
    "linear": linear,
    "dropout": lambda layer: nn.Dropout(p=layer.rate),
    "max_pool": MaxPool,
    "average_pool": average_pool,
    "adaptive_average_pool": lambda layer: nn.AdaptiveAvgPool2d(layer.size),
    "relu": lambda layer: nn.ReLU(),
    "relu6": lambda layer: nn.ReLU6(),
    "global_average_pool": lambda layer: GlobalAveragePool(),
    "flatten": lambda layer: Flatten(),
    "add": lambda layer: Add(),
    "concatenate": lambda layer: Concatenate(),
    "channels": lambda layer: Channels(layer.begin, layer.end),
    "shuffle": lambda layer: Shuffle(layer.groups),
}


class CNN(nn.Cell):
    """Convolutional network: images (batch, channels, height, width) -> logits (batch, classes), in
    training followed by those of the auxiliary heads."""

    def __init__(self, network: networks.LayerGraph, training: bool) -> None:
        super().__init__()
        for layer in network.layers:  # insert_child_to_cell takes no dot
            self._cells[layer.name] = CELLS[layer.op](layer)
        for name, shape in flattened(network).items():
            self._cells[name].flattened = shape
        #: Cell, indices of its inputs and of its output, and indices of values that are freed
        #: afterwards.
        plan = schedule(network, training)
        calls, self.places, self.outputs = plan.bound(lambda call: self._cells[call.layer.name])
        self.calls = [(cell, *numbers) for cell, *numbers in calls]

    def construct(self, images: Tensor) -> Tuple[Tensor, ...]:
        # filled with the images, because in a graph a list whose items change shape has no gradient
        values = (images,) * self.places
        for cell, sources, output, freed in self.calls:
            x = cell(*[values[number] for number in sources])
            values = values[:output] + (x,) + values[output + 1 :]
            for number in freed:
                values = values[:number] + (images,) + values[number + 1 :]
        return tuple([values[number] for number in self.outputs])


class ClassifierDefinition(Base):
    @staticmethod
    def loss(
        outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], hyper: Dict[str, Any]
    ) -> Tensor:
        """Return the mean cross-entropy of the logits, and of each auxiliary head times its
        weight."""
        logits, *heads = (ops.cross_entropy(output, batch["labels"]) for output in outputs)
        for head in heads:
            logits = logits + hyper["auxiliary_weight"] * head
        return logits


class Definition(ClassifierDefinition):
    def build(self, training: bool) -> nn.Cell:
        return CNN(networks.describe(self.model_config), training)
