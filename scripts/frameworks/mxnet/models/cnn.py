"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Tuple

import mxnet as mx
import networks
import numpy as np
from mxnet.contrib.amp import amp
from mxnet.gluon import nn
from networks import Layer, LayerGraph
from networks.schedule import flattened, schedule

from .layers import ModelDefinition, initialized

# On GPUs channels are last, which Tensor Cores take without conversions. On the CPU, convolutions
# only support channels first; oneDNN reorders by itself.
LAYOUTS = {"cpu": "NCHW", "gpu": "NHWC"}

Operation = Callable[..., Any]  # function of mx.nd or mx.sym and the inputs


def layout() -> str:
    """Return the layout of images on the current context."""
    return LAYOUTS[mx.context.current_context().device_type]


def _channel_axis() -> int:
    return layout().index("C")


def convolution(layer: Layer) -> nn.HybridBlock:
    return nn.Conv2D(
        layer.channels,
        *layer.window,
        groups=layer.groups,
        layout=layout(),
        use_bias=layer.bias,
        in_channels=layer.in_channels,
    )


def batch_norm(layer: Layer) -> nn.HybridBlock:
    return nn.BatchNorm(
        axis=_channel_axis(),
        # MXNet's momentum is the share of old statistics, PyTorch's the share of new ones
        momentum=1.0 - layer.momentum,
        epsilon=layer.epsilon,
        in_channels=layer.channels,
    )


def pool(layer: Layer, **options: Any) -> Operation:
    """Pool over windows of the layer's own size."""
    kernel, stride, padding = ((size, size) for size in layer.window)
    options.update(kernel=kernel, stride=stride, pad=padding, layout=layout())
    return lambda F, x: F.Pooling(x, **options)


def max_pool(layer: Layer) -> Operation:
    # "full" has one window more than the description if a window begins in the padding
    convention = "full" if any(layer.extra) else "valid"
    return pool(layer, pool_type="max", pooling_convention=convention)


def adaptive_average_pool(layer: Layer) -> Operation:
    def first(F: Any, x: Any) -> Any:
        return F.contrib.AdaptiveAvgPooling2D(x, output_size=layer.size)

    def last(F: Any, x: Any) -> Any:
        return F.transpose(first(F, F.transpose(x, (0, 3, 1, 2))), (0, 2, 3, 1))

    return first if layout() == "NCHW" else last


def global_average_pool(layer: Layer) -> Operation:
    # the result has one row and one column, which Dense accepts
    options = {"global_pool": True, "pool_type": "avg", "layout": layout()}
    return lambda F, x: F.Pooling(x, kernel=(1, 1), **options)


def concatenate(layer: Layer) -> Operation:
    axis = _channel_axis()
    return lambda F, *parts: F.concat(*parts, dim=axis)


def widened(layer: Layer) -> Operation:
    """Return a concatenation for AMP where some parts are slices. AMP keeps slices in float32, and
    MXNet refuses to concatenate parts of different types."""

    axis = _channel_axis()

    def operation(F: Any, *parts: Any) -> Any:
        return F.concat(*F.amp_multicast(*parts, num_outputs=len(parts)), dim=axis)

    return operation


def channels(layer: Layer) -> Operation:
    axis = _channel_axis()
    return lambda F, x: F.slice_axis(x, axis=axis, begin=layer.begin, end=layer.end)


def shuffle(layer: Layer) -> Operation:
    groups = layer.groups

    def first(F: Any, x: Any) -> Any:
        x = F.reshape(x, (0, -4, groups, -1, -2))  # (batch, groups, channels of a group, h, w)
        return F.reshape(F.swapaxes(x, 1, 2), (0, -3, -2))

    def last(F: Any, x: Any) -> Any:
        x = F.reshape(x, (0, 0, 0, -4, groups, -1))
        return F.reshape(F.swapaxes(x, 3, 4), (0, 0, 0, -3))

    return first if layout() == "NCHW" else last


BLOCKS: Dict[str, Callable[[Layer], nn.HybridBlock]] = {
    "convolution": convolution,
    "batch_norm": batch_norm,
    "linear": lambda layer: nn.Dense(layer.channels, in_units=layer.in_channels),
}
OPERATIONS: Dict[str, Callable[[Layer], Operation]] = {
    "dropout": lambda layer: lambda F, x: F.Dropout(x, p=layer.rate),
    # Activation uses oneDNN in every dtype; F.relu is several times slower in bfloat16
    "relu": lambda layer: lambda F, x: F.Activation(x, act_type="relu"),
    "relu6": lambda layer: lambda F, x: F.clip(x, 0.0, 6.0),
    "max_pool": max_pool,
    "average_pool": lambda layer: pool(layer, pool_type="avg", count_include_pad=True),
    "adaptive_average_pool": adaptive_average_pool,
    "global_average_pool": global_average_pool,
    "flatten": lambda layer: lambda F, x: F.flatten(x),
    # uses oneDNN, unlike +, which broadcasts
    "add": lambda layer: lambda F, x, y: F.elemwise_add(x, y),
    "concatenate": concatenate,
    "channels": channels,
    "shuffle": shuffle,
}


class CNN(nn.HybridBlock):
    """Convolutional network: images in :func:`layout` -> logits (batch, classes), in training
    followed by those of the auxiliary heads."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        sliced = {layer.name for layer in network.layers if layer.op == "channels"}
        operations: Dict[str, Operation] = {}
        for layer in network.layers:
            if layer.op in BLOCKS:
                block = BLOCKS[layer.op](layer)
                self.register_child(block, layer.name)
                operations[layer.name] = _call(block)
            else:
                operations[layer.name] = OPERATIONS[layer.op](layer)
            if layer.op == "concatenate" and amp._amp_initialized and sliced & set(layer.inputs):
                operations[layer.name] = widened(layer)
            if layer.name in network.outputs and layer.op == "global_average_pool":
                operations[layer.name] = _flat(operations[layer.name])
        if layout() == "NCHW":  # with channels last, the order is already that of the shared layout
            for name, shape in flattened(network).items():
                self._children[name].flattened = shape
        self.plans = {
            training: schedule(network, training).bound(lambda call: operations[call.layer.name])
            for training in (True, False)
        }

    def hybrid_forward(self, F: Any, images: Any) -> Tuple[Any, ...]:
        calls, places, outputs = self.plans[mx.autograd.is_training()]
        values: Any = [images] + [None] * (places - 1)
        for operation, inputs, output, freed in calls:
            values[output] = operation(F, *[values[number] for number in inputs])
            for number in freed:
                values[number] = None
        return tuple(values[number] for number in outputs)


def _call(block: nn.HybridBlock) -> Operation:
    return lambda F, x: block(x)


def _flat(operation: Operation) -> Operation:
    return lambda F, x: F.flatten(operation(F, x))


class Definition(ModelDefinition):
    MATMULS = ("Convolution", "FullyConnected")
    LAYOUTS = LAYOUTS

    def build(self) -> nn.HybridBlock:
        network = networks.describe(self.model_config)
        return initialized(CNN(network), networks.weights(network))

    def inputs(self, batch: Mapping[str, Any]) -> Tuple[Any, ...]:
        """Return the batch's arrays that the model takes."""
        images = batch["images"]
        if layout() == "NCHW":
            images = np.ascontiguousarray(images.transpose((0, 3, 1, 2)))
        return (images,)
