"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable, Dict, Tuple

import networks
import oneflow
import oneflow.nn.functional as F
from harness.adapter import inputs as inputs
from networks import Layer, LayerGraph
from networks.fusing import fused
from networks.schedule import Call, flattened, schedule
from oneflow import Tensor, nn

from ..devices import channels_last

Operation = Callable[..., Tensor]

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: nn.init.uniform_(tensor, -bound, bound),
    "constant": nn.init.constant_,
}


def convolution(layer: Layer) -> nn.Module:
    return nn.Conv2d(
        layer.in_shape.channels,
        layer.attributes["channels"],
        layer.attributes["kernel"],
        layer.attributes["stride"],
        layer.attributes["padding"],
        groups=layer.attributes["groups"],
        bias=layer.attributes["bias"],
    )


def batch_norm(layer: Layer) -> nn.Module:
    return _batch_norm(nn.BatchNorm2d, layer)


def batch_norm_relu(layer: Layer) -> nn.Module:
    return _batch_norm(nn.FusedBatchNorm2d, layer)


def _batch_norm(kind: Callable[..., nn.Module], layer: Layer) -> nn.Module:
    return kind(
        layer.shape.channels,
        eps=layer.attributes["epsilon"],
        momentum=layer.attributes["momentum"],
    )


def linear(layer: Layer) -> nn.Module:
    return nn.Linear(
        layer.in_shape.channels, layer.attributes["features"], bias=layer.attributes["bias"]
    )


def dropout(layer: Layer) -> nn.Module:
    return nn.Dropout(layer.attributes["rate"])


def relu(in_place: bool) -> Operation:
    return partial(F.relu, inplace=in_place)


def relu6(layer: Layer) -> Operation:
    return F.relu6


def max_pool(layer: Layer) -> Operation:
    return partial(
        F.max_pool2d,
        kernel_size=layer.attributes["kernel"],
        stride=layer.attributes["stride"],
        padding=layer.attributes["padding"],
        ceil_mode=layer.attributes["ceil"],
        data_format="channels_last" if channels_last() else "channels_first",
    )


def average_pool(layer: Layer) -> Operation:
    # The pool that OneFlow has for channels last leaves padding out of the mean.
    return _channels_first(
        partial(
            F.avg_pool2d,
            kernel_size=layer.attributes["kernel"],
            stride=layer.attributes["stride"],
            padding=layer.attributes["padding"],
            count_include_pad=True,
        )
    )


def adaptive_average_pool(layer: Layer) -> Operation:
    size = layer.attributes["size"]
    return _channels_first(partial(F.adaptive_avg_pool2d, output_size=size))


def _channels_first(pool: Operation) -> Operation:
    """Return ``pool``, which has no kernel for channels last, between conversions where needed."""
    if not channels_last():
        return pool
    return lambda x: pool(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)


def global_average_pool(layer: Layer) -> Operation:
    if channels_last():
        return lambda x: x.mean((1, 2))
    return lambda x: F.adaptive_avg_pool2d(x, 1).flatten(1)


def flatten(layer: Layer) -> Operation:
    return lambda x: x.flatten(1)


def add(layer: Layer) -> Operation:
    return oneflow.add


def concatenate(layer: Layer) -> Operation:
    axis = _channel_axis()
    return lambda *parts: oneflow.cat(parts, dim=axis)


def _channel_axis() -> int:
    return 3 if channels_last() else 1


def channels(layer: Layer) -> Operation:
    begin, end = layer.attributes["begin"], layer.attributes["end"]
    axis = _channel_axis()
    return lambda x: x.narrow(axis, begin, end - begin)


def shuffle(layer: Layer) -> Operation:
    groups, (height, width, all_channels) = layer.attributes["groups"], layer.shape

    def operation(x: Tensor) -> Tensor:
        x = x.reshape(-1, groups, all_channels // groups, height, width)
        return x.transpose(1, 2).reshape(-1, all_channels, height, width)

    def last(x: Tensor) -> Tensor:
        x = x.reshape(-1, height, width, groups, all_channels // groups)
        return x.transpose(3, 4).reshape(-1, height, width, all_channels)

    return last if channels_last() else operation


MODULES: Dict[str, Callable[[Layer], nn.Module]] = {
    make.__name__: make for make in (convolution, batch_norm, batch_norm_relu, linear, dropout)
}
FUNCTIONS: Dict[str, Callable[[Layer], Operation]] = {
    make.__name__: make
    for make in (
        *(relu6, max_pool, average_pool, adaptive_average_pool, global_average_pool),
        *(flatten, add, concatenate, channels, shuffle),
    )
}


class CNN(nn.Module):
    """Convolutional network: images, channels last on GPUs -> logits (batch, classes), in training
    followed by those of the auxiliary heads."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        for layer in network.layers:
            if layer.op in MODULES:
                # add_module takes no dot, which modules within modules would have in their names
                self._modules[layer.name] = MODULES[layer.op](layer)
        if not channels_last():  # else in the order of the shared layout
            for name, shape in flattened(network).items():
                self._modules[name].flattened = shape
        self.plans = {
            training: schedule(network, training).bound(_operation) for training in (True, False)
        }

    def forward(self, images: Tensor) -> Tuple[Tensor, ...]:
        calls, places, outputs = self.plans[self.training]
        values: Any = [images] + [None] * (places - 1)
        for operation, sources, output, freed in calls:
            # by name: a graph has modules of its own in the place of these
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
    return relu(call.in_place) if layer.op == "relu" else FUNCTIONS[layer.op](layer)


def build(model_config: Dict[str, Any]) -> nn.Module:
    network = networks.describe(model_config)
    drawn = networks.weights(network)
    # one kernel, which GPUs alone have
    model = CNN(fused(network) if channels_last() else network)
    for name, parameter in model.named_parameters():
        distribution, value = drawn[name].initial
        INITIALIZERS[distribution](parameter, value)
    return model


def _cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each sample, (batch,), from logits (batch, classes). ``labels``:
    class indices, or probabilities of all classes, (batch, classes)."""
    if labels.ndim > 1:
        return -(labels * F.log_softmax(logits, dim=-1)).sum(dim=-1)
    return F.cross_entropy(logits, labels, reduction="none")


def losses(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> Tuple[Tensor, ...]:
    """Return the cross-entropies of the logits, (batch,), and those of each auxiliary head, times
    its weight; the loss is the sum of their means."""
    logits, *heads = (_cross_entropies(output.float(), batch["labels"]) for output in outputs)
    return (logits, *(model_config["hyperparameters"]["auxiliary_weight"] * head for head in heads))
