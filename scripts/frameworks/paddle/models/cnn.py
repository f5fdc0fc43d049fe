"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Mapping, Tuple

import networks
import paddle
import paddle.nn.functional as F
from networks import Layer, LayerGraph
from networks.schedule import flattened, schedule
from paddle import Tensor, nn

from ..devices import data_format
from .layers import ModelDefinition, initialized

Operation = Callable[..., Tensor]


def convolution(layer: Layer) -> Operation:
    return nn.Conv2D(
        layer.in_channels,
        layer.channels,
        layer.kernel,
        layer.stride,
        list(layer.padding),
        groups=layer.groups,
        bias_attr=None if layer.bias else False,
        data_format=data_format(),
    )


def batch_norm(layer: Layer) -> Operation:
    # Paddle's momentum is the share of old statistics, PyTorch's the share of new ones
    momentum, layout = 1.0 - layer.momentum, data_format()
    return nn.BatchNorm2D(layer.channels, momentum, layer.epsilon, data_format=layout)


def max_pool(layer: Layer) -> Operation:
    # ceil_mode only where needed: in Paddle it can add a window that begins in the padding
    options = {"ceil_mode": any(layer.extra), "data_format": data_format()}
    return lambda x: F.max_pool2d(x, *layer.window, **options)


def average_pool(layer: Layer) -> Operation:
    options = {"exclusive": False, "data_format": data_format()}  # the mean includes the padding
    return lambda x: F.avg_pool2d(x, *layer.window, **options)


def adaptive_average_pool(layer: Layer) -> Operation:
    return partial(F.adaptive_avg_pool2d, output_size=layer.size, data_format=data_format())


def global_average_pool(layer: Layer) -> Operation:
    layout = data_format()
    return lambda x: F.adaptive_avg_pool2d(x, 1, data_format=layout).flatten(1)


def concatenate(layer: Layer) -> Operation:
    axis = _channel_axis()
    return lambda *parts: paddle.concat(parts, axis=axis)


def channels(layer: Layer) -> Operation:
    return partial(paddle.slice, axes=[_channel_axis()], starts=[layer.begin], ends=[layer.end])


def shuffle(layer: Layer) -> Operation:
    return partial(F.channel_shuffle, groups=layer.groups, data_format=data_format())


def _channel_axis() -> int:
    return data_format().index("C")


OPERATIONS: Dict[str, Callable[[Layer], Operation]] = {
    "convolution": convolution,
    "batch_norm": batch_norm,
    "linear": lambda layer: nn.Linear(layer.in_channels, layer.channels),
    "dropout": lambda layer: nn.Dropout(layer.rate),
    "relu": lambda layer: F.relu,
    "relu6": lambda layer: F.relu6,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "adaptive_average_pool": adaptive_average_pool,
    "global_average_pool": global_average_pool,
    "flatten": lambda layer: lambda x: x.flatten(1),
    "add": lambda layer: paddle.add,
    "concatenate": concatenate,
    "channels": channels,
    "shuffle": shuffle,
}


class CNN(nn.Layer):
    """Convolutional network: images, laid out as ``data_format`` says -> logits (batch, classes),
    in training followed by those of the auxiliary heads."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        operations: Dict[str, Operation] = {}
        for layer in network.layers:
            operation = operations[layer.name] = OPERATIONS[layer.op](layer)
            if isinstance(operation, nn.Layer):
                self.add_sublayer(layer.name, operation)
        # with channels last, the order is already that of the shared layout
        if data_format() == "NCHW":
            for name, shape in flattened(network).items():
                self._sub_layers[name].flattened = shape
        self.plans = {
            training: schedule(network, training).bound(lambda call: operations[call.layer.name])
            for training in (True, False)
        }

    def forward(self, images: Tensor) -> Tuple[Tensor, ...]:
        calls, places, outputs = self.plans[self.training]
        values: Any = [images] + [None] * (places - 1)
        for operation, inputs, output, freed in calls:
            values[output] = operation(*[values[number] for number in inputs])
            for number in freed:
                values[number] = None
        return tuple([values[number] for number in outputs])


class Definition(ModelDefinition):
    def build(self) -> nn.Layer:
        network = networks.describe(self.model_config)
        return initialized(CNN(network), networks.weights(network))

    def inputs(self, batch: Mapping[str, Tensor]) -> Tuple[Tensor]:
        images = batch["images"]
        return (images.transpose([0, 3, 1, 2]) if data_format() == "NCHW" else images,)
