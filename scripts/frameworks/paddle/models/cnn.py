"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Tuple

import networks
import paddle
import paddle.nn.functional as F
from networks import Layer, LayerGraph
from networks.schedule import flattened, schedule
from paddle import Tensor, nn

from ..devices import data_format

Operation = Callable[..., Tensor]
Initials = Dict[str, Any]  # of the arrays of a layer, by their names in it

INITIALIZERS: Dict[str, Callable[[float], nn.initializer.Initializer]] = {
    "normal": lambda deviation: nn.initializer.Normal(0.0, deviation),
    "uniform": lambda bound: nn.initializer.Uniform(-bound, bound),
    "constant": nn.initializer.Constant,
}


def convolution(layer: Layer, initials: Initials) -> Operation:
    return nn.Conv2D(
        layer.in_shape.channels,
        layer.attributes["channels"],
        layer.attributes["kernel"],
        stride=layer.attributes["stride"],
        padding=list(layer.attributes["padding"]),
        groups=layer.attributes["groups"],
        weight_attr=initials["weight"],
        bias_attr=initials.get("bias", False),  # False: it has none
        data_format=data_format(),
    )


def batch_norm(layer: Layer, initials: Initials) -> Operation:
    return nn.BatchNorm2D(
        layer.shape.channels,
        # Paddle's momentum is the share of the old statistics, PyTorch's that of the new ones
        momentum=1.0 - layer.attributes["momentum"],
        epsilon=layer.attributes["epsilon"],
        weight_attr=initials["weight"],
        bias_attr=initials["bias"],
        data_format=data_format(),
    )


def linear(layer: Layer, initials: Initials) -> Operation:
    return nn.Linear(
        layer.in_shape.channels,
        layer.attributes["features"],
        weight_attr=initials["weight"],
        bias_attr=initials.get("bias", False),
    )


def dropout(layer: Layer, initials: Initials) -> Operation:
    return nn.Dropout(layer.attributes["rate"], mode="upscale_in_train")


def relu(layer: Layer, initials: Initials) -> Operation:
    return F.relu


def relu6(layer: Layer, initials: Initials) -> Operation:
    return F.relu6


def max_pool(layer: Layer, initials: Initials) -> Operation:
    return partial(
        F.max_pool2d,
        kernel_size=layer.attributes["kernel"],
        stride=layer.attributes["stride"],
        padding=layer.attributes["padding"],
        # not "ceil": Paddle's has a window more where that would begin in the padding
        ceil_mode=any(layer.attributes["extra"]),
        data_format=data_format(),
    )


def average_pool(layer: Layer, initials: Initials) -> Operation:
    return partial(
        F.avg_pool2d,
        kernel_size=layer.attributes["kernel"],
        stride=layer.attributes["stride"],
        padding=layer.attributes["padding"],
        exclusive=False,  # the padding counts
        data_format=data_format(),
    )


def adaptive_average_pool(layer: Layer, initials: Initials) -> Operation:
    size = layer.attributes["size"]
    return partial(F.adaptive_avg_pool2d, output_size=size, data_format=data_format())


def global_average_pool(layer: Layer, initials: Initials) -> Operation:
    layout = data_format()
    return lambda x: F.adaptive_avg_pool2d(x, 1, data_format=layout).flatten(1)


def flatten(layer: Layer, initials: Initials) -> Operation:
    return lambda x: x.flatten(1)


def add(layer: Layer, initials: Initials) -> Operation:
    return paddle.add


def concatenate(layer: Layer, initials: Initials) -> Operation:
    axis = _channel_axis()
    return lambda *parts: paddle.concat(parts, axis=axis)


def channels(layer: Layer, initials: Initials) -> Operation:
    begin, end = layer.attributes["begin"], layer.attributes["end"]
    return partial(paddle.slice, axes=[_channel_axis()], starts=[begin], ends=[end])


def shuffle(layer: Layer, initials: Initials) -> Operation:
    groups = layer.attributes["groups"]
    return partial(F.channel_shuffle, groups=groups, data_format=data_format())


def _channel_axis() -> int:
    return data_format().index("C")


OPERATIONS: Dict[str, Callable[[Layer, Initials], Operation]] = {
    make.__name__: make
    for make in (
        *(convolution, batch_norm, linear, dropout, relu, relu6, max_pool, average_pool),
        *(adaptive_average_pool, global_average_pool, flatten, add, concatenate, channels, shuffle),
    )
}


class CNN(nn.Layer):
    """Convolutional network: images, laid out as ``data_format`` says -> logits (batch, classes),
    in training followed by those of the auxiliary heads."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        initials: Dict[str, Initials] = {}
        for name, weight in networks.weights(network).items():
            if weight.trained:
                holder, _, attribute = name.rpartition(".")
                distribution, value = weight.initial
                initials.setdefault(holder, {})[attribute] = INITIALIZERS[distribution](value)
        operations: Dict[str, Operation] = {}
        for layer in network.layers:
            operation = OPERATIONS[layer.op](layer, initials.get(layer.name, {}))
            operations[layer.name] = operation
            if isinstance(operation, nn.Layer):
                self.add_sublayer(layer.name, operation)
        if data_format() == "NCHW":  # else in the order of the shared layout
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


def build(model_config: Dict[str, Any]) -> nn.Layer:
    return CNN(networks.describe(model_config))


def inputs(batch: Dict[str, Tensor]) -> Tuple[Tensor]:
    images = batch["images"]
    return (images.transpose([0, 3, 1, 2]) if data_format() == "NCHW" else images,)


def loss(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> Tensor:
    logits, *heads = (output.astype("float32") for output in outputs)
    labels = batch["labels"]  # classes, or probabilities of all of them
    soft = labels.ndim > 1
    value = F.cross_entropy(logits, labels, soft_label=soft)
    for auxiliary in heads:
        weight = model_config["hyperparameters"]["auxiliary_weight"]
        value = value + weight * F.cross_entropy(auxiliary, labels, soft_label=soft)
    return value
