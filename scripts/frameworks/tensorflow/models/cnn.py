"""A convolutional network, layer by layer as ``scripts/networks`` describes it.

Each layer with weights is a Keras layer with the description's name, which ``adapter.py`` uses.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

import keras
import networks
import tensorflow as tf
from keras import layers
from networks import Layer, LayerGraph
from networks.schedule import schedule
from networks.tensorflow_layers import OPERATIONS, padded

from ..devices import has_gradient_of_groups
from .layers import ModelDefinition, initializer

Tensors = List[tf.Tensor]


class BatchNormalization(layers.BatchNormalization):
    """Keras's layer of images by TensorFlow's fused kernels, which Keras 3 does not call.

    Running variances are unbiased."""

    def call(self, inputs: tf.Tensor, training: bool = False, mask: None = None) -> tf.Tensor:
        # tf.nn.fused_batch_norm would raise a smaller epsilon to 1.001e-5.
        y, *moving = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=self.gamma,
            offset=self.beta,
            mean=self.moving_mean,
            variance=self.moving_variance,
            epsilon=self.epsilon,
            exponential_avg_factor=1.0 - self.momentum if training else 1.0,
            is_training=training,
        )[:3]
        if training:
            for variable, value in zip((self.moving_mean, self.moving_variance), moving):
                variable.assign(value)
        return y


class CNN(keras.Model):
    """Images (batch, h, w, 3) to float32 logits (batch, classes), in training followed by those of
    the auxiliary heads. It is not a functional model, which would compute all outputs in inference,
    too."""

    def __init__(self, network: LayerGraph) -> None:
        super().__init__()
        self.holders = {
            layer.name: HOLDERS[layer.op](layer) for layer in network.layers if layer.op in HOLDERS
        }
        for layer in network.layers:
            if layer.name in self.holders:
                self.holders[layer.name].build(_build_shape(layer, self.holders[layer.name]))
        self.plans = {training: schedule(network, training) for training in (True, False)}
        self.built = True

    def call(self, images: tf.Tensor, training: bool = False) -> Tuple[tf.Tensor, ...]:
        plan = self.plans[training]
        values: Any = [tf.cast(images, self.compute_dtype)] + [None] * (plan.places - 1)
        for call in plan.calls:
            layer, inputs = call.layer, [values[name] for name in call.inputs]
            values[call.output] = self._computed(layer, inputs, training)
        return tuple(tf.cast(values[name], tf.float32) for name in plan.outputs)

    def _computed(self, layer: Layer, inputs: Tensors, training: bool) -> tf.Tensor:
        if layer.op not in HOLDERS:
            return OPERATIONS[layer.op](layer, *inputs)
        (x,), holder = inputs, self.holders[layer.name]
        if layer.op in ("batch_norm", "dropout"):
            return holder(x, training=training)
        if layer.op == "convolution" and holder.padding == "valid":
            x = padded(x, layer.padding)
        if layer.groups > 1 and layer.op == "convolution":
            return _grouped(layer, holder, x, training)
        return holder(x)


def _build_shape(layer: Layer, holder: layers.Layer) -> Tuple[Any, ...]:
    """Return the input shape with which the holder is built."""
    height, width, channels = layer.in_shape
    if isinstance(holder, layers.Dense):
        return None, channels
    if getattr(holder, "padding", "") == "valid":  # _computed() pads before this layer
        rows, columns = layer.padding
        height, width = height + 2 * rows, width + 2 * columns
    return None, height, width, channels


def _convolution(layer: Layer) -> layers.Layer:
    # without strides, "same" pads both sides equally; otherwise the input is padded separately
    same = layer.stride == 1 and layer.padding == tuple(size // 2 for size in layer.kernel)
    return layers.Conv2D(
        layer.channels,
        layer.kernel,
        strides=layer.stride,
        padding="same" if same else "valid",
        groups=layer.groups,
        use_bias=layer.bias,
        kernel_initializer=initializer(*layer.initial),
        bias_initializer=initializer(*layer.initial_bias),
        name=layer.name,
    )


def _batch_norm(layer: Layer) -> layers.Layer:
    # Keras's momentum is the share of old statistics, PyTorch's the share of new ones.
    momentum, epsilon = 1.0 - layer.momentum, layer.epsilon
    return BatchNormalization(momentum=momentum, epsilon=epsilon, name=layer.name)


def _linear(layer: Layer) -> layers.Layer:
    return layers.Dense(
        layer.channels,
        kernel_initializer=initializer(*layer.initial),
        bias_initializer=initializer(*layer.initial_bias),
        name=layer.name,
    )


#: Functions from a layer to the Keras layer that holds its arrays or its random state.
HOLDERS: Dict[str, Callable[[Layer], layers.Layer]] = {
    "convolution": _convolution,
    "batch_norm": _batch_norm,
    "linear": _linear,
    "dropout": lambda layer: layers.Dropout(layer.rate),
}


def _grouped(layer: Layer, holder: layers.Conv2D, x: tf.Tensor, training: bool) -> tf.Tensor:
    """Convolve in groups without the layer's own call, which would compile each convolution with
    XLA."""
    kernel = tf.cast(holder.kernel, x.dtype)
    stride, padding, groups = layer.stride, holder.padding.upper(), layer.groups
    if groups == layer.channels == layer.in_channels:
        kernel = tf.reshape(kernel, (*layer.kernel, layer.channels, 1))
        y = tf.nn.depthwise_conv2d(x, kernel, (1, stride, stride, 1), padding)
    elif training and not has_gradient_of_groups():
        pairs = zip(tf.split(x, groups, -1), tf.split(kernel, groups, -1))
        y = tf.concat([tf.nn.conv2d(part, kernel, stride, padding) for part, kernel in pairs], -1)
    else:
        y = tf.nn.conv2d(x, kernel, stride, padding)
    return tf.nn.bias_add(y, tf.cast(holder.bias, x.dtype)) if layer.bias else y


class Definition(ModelDefinition):
    def build(self) -> keras.Model:
        return CNN(networks.describe(self.model_config))

    def inputs(self, batch: Mapping[str, tf.Tensor]) -> tf.Tensor:
        return batch["images"]
