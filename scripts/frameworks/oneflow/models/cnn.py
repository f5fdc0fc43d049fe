"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Tuple

import networks
import oneflow
import oneflow.nn.functional as F
from networks import Layer, LayerGraph
from networks.schedule import FUSED, Call, flattened, fused, schedule
from oneflow import Tensor, nn

from ..devices import channels_last
from .layers import ModelDefinition, initialized

Operation = Callable[..., Tensor]


def max_pool(layer: Layer) -> Operation:
    data_format = "channels_last" if channels_last() else "channels_first"
    return partial(
        F.max_pool2d,
        kernel_size=layer.kernel,
        stride=layer.stride,
        padding=layer.padding,
        ceil_mode=layer.ceil,
        data_format=data_format,
    )


def average_pool(layer: Layer) -> Operation:
    # OneFlow's pool for channels last excludes padding from the mean.
    return _channels_first(lambda x: F.avg_pool2d(x, *layer.window, count_include_pad=True))


def adaptive_average_pool(layer: Layer) -> Operation:
    return _channels_first(partial(F.adaptive_avg_pool2d, output_size=layer.size))


def _channels_first(pool: Operation) -> Operation:
    """Wrap ``pool``, which has no kernel for channels last, in conversions where needed."""
    if not channels_last():
        return pool
    return lambda x: pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


def global_average_pool(layer: Layer) -> Operation:
    if channels_last():
        return lambda x: x.mean((1, 2))
    return lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1)


def concatenate(layer: Layer) -> Operation:
    axis = _channel_axis()
    return lambda *parts: oneflow.cat(parts, dim=axis)


def _channel_axis() -> int:
    return 3 if channels_last() else 1


def channels(layer: Layer) -> Operation:
    axis = _channel_axis()
    return lambda x: x.narrow(axis, layer.begin, layer.end - layer.begin)


def shuffle(layer: Layer) -> Operation:
    groups, (height, width, all_channels) = layer.groups, layer.shape

    def operation(x: Tensor) -> Tensor:
        x = x.reshape(-1, groups, all_channels // groups, height, width)
        return x.transpose(1, 2).reshape(-1, all_channels, height, width)

    def last(x: Tensor) -> Tensor:
        x = x.reshape(-1, height, width, groups, all_channels // groups)
        return x.transpose(3, 4).reshape(-1, height, width, all_channels)

    return last if channels_last() else operation


MODULES: Dict[str, Callable[[Layer], nn.Module]] = {
    "convolution": lambda layer: nn.Conv2d(
        layer.in_channels, layer.channels, *layer.window, groups=layer.groups, bias=layer.bias
    ),
    "batch_norm": lambda layer: nn.BatchNorm2d(layer.channels, layer.epsilon, layer.momentum),
    FUSED: lambda layer: nn.FusedBatchNorm2d(layer.channels, layer.epsilon, layer.momentum),
    "linear": lambda layer: nn.Linear(layer.in_channels, layer.channels),
    "dropout": lambda layer: nn.Dropout(layer.rate),
}
FUNCTIONS: Dict[str, Callable[[Layer], Operation]] = {
    "relu6": lambda layer: F.relu6,
    "max_pool": max_pool,
    "average_pool": average_pool,
    "adaptive_average_pool": adaptive_average_pool,
    "global_average_pool": global_average_pool,
    "flatten": lambda layer: lambda x: x.flatten(1),
    "add": lambda layer: oneflow.add,
    "concatenate": concatenate,
    "channels": channels,
    "shuffle": shuffle,
}


class CNN(nn.Module):
    """Convolutional network: images, channels last on GPUs -> logits (batch, classes), in training
    followed by those of the auxiliary heads."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        for layer in network.layers:
            if layer.op in MODULES:
                # set directly, because add_module refuses names with dots
                self._modules[layer.name] = MODULES[layer.op](layer)
        # with channels last, the order is already that of the shared layout
        if not channels_last():
            for name, shape in flattened(network).items():
                self._modules[name].flattened = shape
        self.plans = {
            training: schedule(network, training).bound(_operation) for training in (True, False)
        }

    def forward(self, images: Tensor) -> Tuple[Tensor, ...]:
        calls, places, outputs = self.plans[self.training]
        values: Any = [images] + [None] * (places - 1)
        for operation, sources, output, freed in calls:
            # looked up by name, because a graph replaces the modules
            run = self._modules[operation] if isinstance(operation, str) else operation
            values[output] = run(*[values[number] for number in sources])
            for number in freed:
                values[number] = None
        return tuple([values[number] for number in outputs])


def _operation(call: Call) -> Any:
    """Return the function of a call, or the name of its module."""
    layer = call.layer
    if layer.op in MODULES:
        return layer.name
    if layer.op == "relu":
        return partial(F.relu, inplace=call.in_place)
    return FUNCTIONS[layer.op](layer)


class Definition(ModelDefinition):
    def build(self) -> nn.Module:
        network = networks.describe(self.model_config)
        # fused into one kernel, which exists on GPUs only
        model = CNN(fused(network) if channels_last() else network)
        return initialized(model, networks.weights(network))
