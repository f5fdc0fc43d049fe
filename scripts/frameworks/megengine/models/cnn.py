"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Set, Tuple

import megengine.functional as F
import megengine.module as M
import networks
from megengine import Tensor
from networks import Layer, LayerGraph
from networks.schedule import BY_VALUE, Call, flattened, schedule

from .layers import ModelDefinition, initialized

Operation = Callable[..., Tensor]


def batch_norm(layer: Layer) -> M.Module:
    # MegEngine's momentum is the share of the old statistics
    return M.BatchNorm2d(layer.channels, layer.epsilon, 1.0 - layer.momentum)


def max_pool(layer: Layer) -> Operation:
    if any(layer.extra):
        return lambda x: F.max_pool2d(_padded(x, layer), layer.kernel, layer.stride)
    return lambda x: F.max_pool2d(x, *layer.window)


def max_pool_of_repeated(layer: Layer) -> Operation:
    """Return a max pool that passes the gradient to one of several equal values.

    ``F.max_pool2d`` would pass the whole gradient to each of them (1.13.0)."""

    def operation(x: Tensor) -> Tensor:
        windows = F.sliding_window(_padded(x, layer), layer.kernel, 0, layer.stride)
        windows = F.flatten(windows, 4)
        return F.nn.indexing_one_hot(windows, F.argmax(windows, 4), 4)

    return operation


def _padded(x: Tensor, layer: Layer) -> Tensor:
    """Return ``x`` padded with values that are never the largest."""
    sides = ((layer.padding, layer.padding + more) for more in layer.extra)
    return F.nn.pad(x, ((0, 0), (0, 0), *sides), constant_value=-3e38)


def adaptive_average_pool(layer: Layer) -> Operation:
    # not F.adaptive_avg_pool2d, whose windows all have one size
    size = layer.size
    rows, columns = (
        [slice(i * extent // size, -(-(i + 1) * extent // size)) for i in range(size)]
        for extent in layer.in_shape[:2]
    )

    def operation(x: Tensor) -> Tensor:
        x = F.stack([x[:, :, window].mean(2) for window in rows], 2)
        return F.stack([x[:, :, :, window].mean(3) for window in columns], 3)

    return operation


def shuffle(layer: Layer) -> Operation:
    groups, (height, width, channels) = layer.groups, layer.shape

    def operation(x: Tensor) -> Tensor:
        x = x.reshape(-1, groups, channels // groups, height, width)
        return x.transpose(0, 2, 1, 3, 4).reshape(-1, channels, height, width)

    return operation


MODULES: Dict[str, Callable[[Layer], M.Module]] = {
    "convolution": lambda layer: M.Conv2d(
        layer.in_channels, layer.channels, *layer.window, groups=layer.groups, bias=layer.bias
    ),
    "batch_norm": batch_norm,
    "linear": lambda layer: M.Linear(layer.in_channels, layer.channels),
    "dropout": lambda layer: M.Dropout(layer.rate),
}
FUNCTIONS: Dict[str, Callable[[Layer], Operation]] = {
    "relu": lambda layer: F.relu,
    "relu6": lambda layer: F.relu6,
    "max_pool": max_pool,
    "max_pool_of_repeated": max_pool_of_repeated,
    # "average" includes the padding
    "average_pool": lambda layer: lambda x: F.avg_pool2d(x, *layer.window, mode="average"),
    "adaptive_average_pool": adaptive_average_pool,
    "global_average_pool": lambda layer: lambda x: x.mean((2, 3)),
    "flatten": lambda layer: lambda x: F.flatten(x, 1),
    "add": lambda layer: F.add,
    "concatenate": lambda layer: lambda *parts: F.concat(parts, axis=1),
    "channels": lambda layer: lambda x: x[:, layer.begin : layer.end],
    "shuffle": shuffle,
}


class CNN(M.Module):
    """Convolutional network: images (batch, channels, height, width) -> logits (batch, classes), in
    training followed by those of the auxiliary heads."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        for layer in network.layers:
            if layer.op in MODULES:
                setattr(self, layer.name, MODULES[layer.op](layer))
        for name, shape in flattened(network).items():
            getattr(self, name).flattened = shape

        def operation(call: Call) -> Any:
            layer = call.layer
            return getattr(self, layer.name) if layer.op in MODULES else FUNCTIONS[layer.op](layer)

        plans = {mode: schedule(network, mode).bound(operation) for mode in (True, False)}
        # kept as a method, because MegEngine would find the layers in a dictionary again
        self._plan_of = plans.__getitem__

    def forward(self, images: Tensor) -> Tuple[Tensor, ...]:
        calls, places, outputs = self._plan_of(self.training)
        values: Any = [images] + [None] * (places - 1)
        for operation, sources, output, freed in calls:
            values[output] = operation(*[values[number] for number in sources])
            for number in freed:
                values[number] = None
        return tuple([values[number] for number in outputs])


def _with_repeated(network: LayerGraph) -> LayerGraph:
    """Return ``network`` with a separate operation for max pools whose input another max pool has
    repeated."""
    repeated: Set[str] = set()
    layers = []
    for layer in network.layers:
        pooled, of_repeated = layer.op == "max_pool", not repeated.isdisjoint(layer.inputs)
        overlaps = pooled and layer.kernel > layer.stride
        hands_on = pooled or layer.op in ("concatenate", *BY_VALUE)
        if overlaps or (of_repeated and hands_on):
            repeated.add(layer.name)
        op = "max_pool_of_repeated" if pooled and of_repeated else layer.op
        layers.append(layer._replace(op=op))
    return network._replace(layers=tuple(layers))


class Definition(ModelDefinition):
    def build(self) -> M.Module:
        network = _with_repeated(networks.describe(self.model_config))
        return initialized(CNN(network), networks.weights(network))
