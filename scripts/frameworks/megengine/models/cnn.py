"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Set, Tuple

import megengine.functional as F
import megengine.module as M
import networks
from harness.adapter import inputs as inputs
from megengine import Tensor
from networks import Layer, LayerGraph
from networks.schedule import BY_VALUE, Call, flattened, schedule

Operation = Callable[..., Tensor]

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: M.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: M.init.uniform_(tensor, -bound, bound),
    "constant": M.init.fill_,
}


def convolution(layer: Layer) -> M.Module:
    return M.Conv2d(
        layer.in_shape.channels,
        layer.attributes["channels"],
        layer.attributes["kernel"],
        layer.attributes["stride"],
        layer.attributes["padding"],
        groups=layer.attributes["groups"],
        bias=layer.attributes["bias"],
    )


def batch_norm(layer: Layer) -> M.Module:
    # MegEngine's momentum is the share of the old statistics
    momentum = 1.0 - layer.attributes["momentum"]
    return M.BatchNorm2d(layer.shape.channels, layer.attributes["epsilon"], momentum)


def linear(layer: Layer) -> M.Module:
    return M.Linear(layer.in_shape.channels, layer.attributes["features"], layer.attributes["bias"])


def dropout(layer: Layer) -> M.Module:
    return M.Dropout(layer.attributes["rate"])


def relu(layer: Layer) -> Operation:
    return F.relu


def relu6(layer: Layer) -> Operation:
    return F.relu6


def max_pool(layer: Layer) -> Operation:
    kernel, stride, padding, extra = (
        layer.attributes[name] for name in ("kernel", "stride", "padding", "extra")
    )
    if not any(extra):
        return partial(F.max_pool2d, kernel_size=kernel, stride=stride, padding=padding)
    return lambda x: F.max_pool2d(_padded(x, padding, extra), kernel, stride)


def max_pool_of_repeated(layer: Layer) -> Operation:
    """Return a max pool that passes the gradient to one of several equal values.

    ``F.max_pool2d`` would pass the whole gradient to each of them (1.13.0)."""
    kernel, stride, padding, extra = (
        layer.attributes[name] for name in ("kernel", "stride", "padding", "extra")
    )

    def operation(x: Tensor) -> Tensor:
        windows = F.sliding_window(_padded(x, padding, extra), kernel, 0, stride)
        windows = F.flatten(windows, 4)
        return F.nn.indexing_one_hot(windows, F.argmax(windows, 4), 4)

    return operation


def _padded(x: Tensor, padding: int, extra: Tuple[int, int]) -> Tensor:
    """Return ``x`` with a margin that is never the largest."""
    margins = ((0, 0), (0, 0), *((padding, padding + more) for more in extra))
    return F.nn.pad(x, margins, constant_value=-3e38)


def average_pool(layer: Layer) -> Operation:
    return partial(
        F.avg_pool2d,
        kernel_size=layer.attributes["kernel"],
        stride=layer.attributes["stride"],
        padding=layer.attributes["padding"],
        mode="average",  # with the padding
    )


def adaptive_average_pool(layer: Layer) -> Operation:
    # F.adaptive_avg_pool2d has windows of one size, whatever the extents
    size = layer.attributes["size"]
    rows, columns = (
        [slice(i * extent // size, -(-(i + 1) * extent // size)) for i in range(size)]
        for extent in layer.in_shape[:2]
    )

    def operation(x: Tensor) -> Tensor:
        x = F.stack([x[:, :, window].mean(2) for window in rows], 2)
        return F.stack([x[:, :, :, window].mean(3) for window in columns], 3)

    return operation


def global_average_pool(layer: Layer) -> Operation:
    return lambda x: x.mean((2, 3))


def flatten(layer: Layer) -> Operation:
    return lambda x: F.flatten(x, 1)


def add(layer: Layer) -> Operation:
    return F.add


def concatenate(layer: Layer) -> Operation:
    return lambda *parts: F.concat(parts, axis=1)


def channels(layer: Layer) -> Operation:
    begin, end = layer.attributes["begin"], layer.attributes["end"]
    return lambda x: x[:, begin:end]


def shuffle(layer: Layer) -> Operation:
    groups, (height, width, channels) = layer.attributes["groups"], layer.shape

    def operation(x: Tensor) -> Tensor:
        x = x.reshape(-1, groups, channels // groups, height, width)
        return x.transpose(0, 2, 1, 3, 4).reshape(-1, channels, height, width)

    return operation


MODULES: Dict[str, Callable[[Layer], M.Module]] = {
    make.__name__: make for make in (convolution, batch_norm, linear, dropout)
}
FUNCTIONS: Dict[str, Callable[[Layer], Operation]] = {
    make.__name__: make
    for make in (
        *(
            max_pool_of_repeated,
            relu,
            relu6,
            max_pool,
            average_pool,
            adaptive_average_pool,
            global_average_pool,
        ),
        *(flatten, add, concatenate, channels, shuffle),
    )
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
        self._plan_of = plans.__getitem__  # in a dictionary MegEngine would find the layers again

    def forward(self, images: Tensor) -> Tuple[Tensor, ...]:
        calls, places, outputs = self._plan_of(self.training)
        values: Any = [images] + [None] * (places - 1)
        for operation, sources, output, freed in calls:
            values[output] = operation(*[values[number] for number in sources])
            for number in freed:
                values[number] = None
        return tuple([values[number] for number in outputs])


def _with_repeated(network: LayerGraph) -> LayerGraph:
    """Return ``network`` with max pools of what other max pools repeat as operations of their
    own."""
    repeated: Set[str] = set()
    layers = []
    for layer in network.layers:
        pooled, of_repeated = layer.op == "max_pool", not repeated.isdisjoint(layer.inputs)
        overlaps = pooled and layer.attributes["kernel"] > layer.attributes["stride"]
        hands_on = pooled or layer.op in ("concatenate", *BY_VALUE)
        if overlaps or (of_repeated and hands_on):
            repeated.add(layer.name)
        op = "max_pool_of_repeated" if pooled and of_repeated else layer.op
        layers.append(layer._replace(op=op))
    return network._replace(layers=tuple(layers))


def build(model_config: Dict[str, Any]) -> M.Module:
    network = _with_repeated(networks.describe(model_config))
    drawn = networks.weights(network)
    model = CNN(network)
    for name, parameter in model.named_parameters():
        distribution, value = drawn[name].initial
        INITIALIZERS[distribution](parameter, value)
    return model


def losses(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> Tuple[Tensor, ...]:
    """Return the cross-entropies of the logits, (batch,), and those of each auxiliary head, times
    its weight; the loss is the sum of their means."""
    logits, *heads = (_cross_entropies(output, batch["labels"]) for output in outputs)
    return (logits, *(model_config["hyperparameters"]["auxiliary_weight"] * head for head in heads))


def _cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return a vector, (batch,). ``labels``: classes, or probabilities (batch, classes)."""
    if labels.ndim > 1:
        return -(labels * F.logsoftmax(logits, 1)).sum(1)
    return F.loss.cross_entropy(logits, labels, reduction="none")
