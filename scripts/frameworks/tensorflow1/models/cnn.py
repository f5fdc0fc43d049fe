"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Sequence, Tuple

import networks
import tensorflow as tf
from networks import Layer
from networks.tensorflow_layers import OPERATIONS, padded

from ..steps import Scope, Variables
from . import layers

#: Number of convolutions that XLA compiles together, as in a bottleneck.
COMPILED_TOGETHER = 3


def _parts(computed: Sequence[Layer]) -> Iterator[List[Layer]]:
    """Yield ``computed`` in parts of up to COMPILED_TOGETHER convolutions and the layers after
    each."""
    part: List[Layer] = []
    convolutions = 0
    for layer in computed:
        if layer.op == "convolution":
            if convolutions == COMPILED_TOGETHER:
                yield part
                part, convolutions = [], 0
            convolutions += 1
        part.append(layer)
    yield part


def _convolution(layer: Layer, variables: Variables, x: tf.Tensor) -> tf.Tensor:
    weight = variables[f"{layer.name}.weight"]
    stride, groups, inner = layer.stride, layer.groups, layer.in_channels
    if groups == 1:
        y = _ungrouped(layer, x, weight)
    elif groups == inner:
        # The operation has no explicit padding.
        x = padded(x, layer.padding)
        weight = tf.reshape(weight, (*layer.kernel, inner, layer.channels // inner))
        y = tf.nn.depthwise_conv2d(x, weight, (1, stride, stride, 1), "VALID")
    else:
        # On a CPU, Conv2D refuses groups. Split and concatenated, as in TensorFlow 1's ResNeXt
        # models, the matmuls are the same as in a grouped convolution.
        pairs = zip(tf.split(x, groups, -1), tf.split(weight, groups, -1))
        y = tf.concat([_ungrouped(layer, *pair) for pair in pairs], -1)
    return tf.nn.bias_add(y, variables[f"{layer.name}.bias"]) if layer.bias else y


def _ungrouped(layer: Layer, x: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    rows, columns = layer.padding
    padding = [[0, 0], [rows, rows], [columns, columns], [0, 0]]
    return tf.nn.conv2d(x, weight, strides=layer.stride, padding=padding)


class Definition(layers.ModelDefinition):
    def variables(self) -> Variables:
        return layers.drawn(networks.weights(networks.describe(self.model_config)))

    def forward(
        self, variables: Variables, batch: Dict[str, Any], training: bool, scope: Scope
    ) -> Tuple[List[tf.Tensor], Dict[str, tf.Tensor]]:
        """Map images (batch, height, width, 3) to logits (batch, classes), in training followed by
        those of the auxiliary heads, with the batch's means and variances by the names of their
        running statistics. Every ``scope()`` holds a part that is compiled separately."""
        network = networks.describe(self.model_config)
        left_out = () if training else network.auxiliary
        computed = [layer for layer in network.layers if layer.name not in left_out]
        values: Dict[str, tf.Tensor] = {networks.IMAGES: batch["images"].value()}
        statistics: Dict[str, tf.Tensor] = {}
        for part in _parts(computed):
            with scope():
                for layer in part:
                    inputs = [values[name] for name in layer.inputs]
                    if layer.op == "batch_norm":
                        y, of_batch = layers.batch_norm(
                            inputs[0], variables, layer.name, layer.epsilon, training
                        )
                        statistics.update(of_batch)
                    elif layer.op == "convolution":
                        y = _convolution(layer, variables, inputs[0])
                    elif layer.op == "linear":
                        y = layers.dense(inputs[0], variables, layer.name)
                    elif layer.op == "dropout":
                        y = layers.dropout(inputs[0], layer.rate, training)
                    else:
                        y = OPERATIONS[layer.op](layer, *inputs)
                    values[layer.name] = y
        return [values[name] for name in network.outputs if name not in left_out], statistics
