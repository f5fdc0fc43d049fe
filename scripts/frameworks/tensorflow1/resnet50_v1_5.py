"""ResNet-50 v1.5 (He et al. 2015, arXiv:1512.03385; the stride of 2 of a stage in its first 3x3
convolution, as in Goyal et al. 2017, arXiv:1706.02677)."""

from __future__ import annotations

import math
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import tensorflow as tf

from . import layers
from .compiler import Scope
from .variables import Variables, constant, normal, uniform

EXPANSION = 4  # channels a block puts out, over its width


def variables(facts: Dict[str, Any]) -> Variables:
    """All weights and running statistics by the names that the frameworks share."""
    found: Variables = {}
    stages = facts["hyperparameters"]["stages"]
    channels = stages[0][0]
    _add_convolution(found, "conv", 7, 3, channels)
    _add_norm(found, "norm", channels)
    for name, channels_in, width, _ in _blocks(stages):
        channels = width * EXPANSION
        shapes = ((1, channels_in, width), (3, width, width), (1, width, channels))
        for number, (kernel, inner, outer) in enumerate(shapes, 1):
            _add_convolution(found, f"{name}.conv{number}", kernel, inner, outer)
            _add_norm(found, f"{name}.norm{number}", outer)
        if channels_in != channels:
            _add_convolution(found, f"{name}.shortcut.conv", 1, channels_in, channels)
            _add_norm(found, f"{name}.shortcut.norm", channels)
    classes = facts["hyperparameters"]["classes"]
    bound = 1.0 / math.sqrt(channels)
    found["classifier.weight"] = uniform((channels, classes), bound)
    found["classifier.bias"] = constant((classes,), 0.0)
    return found


def forward(
    variables: Variables, batch: Dict[str, Any], facts: Dict[str, Any], training: bool, scope: Scope
) -> Tuple[List[tf.Tensor], Dict[str, tf.Tensor]]:
    """Images (batch, height, width, 3) -> the logits (batch, classes), and, in training, the
    batch's means and variances by the names of their running statistics. Every ``scope()`` holds
    a part that is to be compiled by itself."""
    statistics: Dict[str, tf.Tensor] = {}
    epsilon = facts["hyperparameters"]["batch_norm_epsilon"]

    def convolution(x: tf.Tensor, name: str, stride: int = 1) -> tf.Tensor:
        weight = variables[f"{name}.weight"]
        margin = [weight.shape[0].value // 2] * 2
        # "SAME" pads an even image on one side only when it strides.
        padding = [[0, 0], margin, margin, [0, 0]]
        return tf.nn.conv2d(x, weight, strides=stride, padding=padding)

    def norm(x: tf.Tensor, name: str) -> tf.Tensor:
        y, of_batch = layers.batch_norm(x, variables, name, epsilon, training)
        statistics.update(of_batch)
        return y

    with scope():
        x = tf.nn.relu(norm(convolution(batch["images"], "conv", stride=2), "norm"))
        # After the ReLU nothing is below zero, so padding with zeros is padding with -infinity.
        x = tf.nn.max_pool2d(tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), 3, 2, "VALID")
    for name, _, _, stride in _blocks(facts["hyperparameters"]["stages"]):
        with scope():
            y = tf.nn.relu(norm(convolution(x, f"{name}.conv1"), f"{name}.norm1"))
            y = tf.nn.relu(norm(convolution(y, f"{name}.conv2", stride), f"{name}.norm2"))
            y = norm(convolution(y, f"{name}.conv3"), f"{name}.norm3")
            if f"{name}.shortcut.conv.weight" in variables:
                x = norm(convolution(x, f"{name}.shortcut.conv", stride), f"{name}.shortcut.norm")
            x = tf.nn.relu(y + x)
    with scope():
        x = tf.matmul(tf.reduce_mean(x, axis=(1, 2)), variables["classifier.weight"])
        logits = tf.nn.bias_add(x, variables["classifier.bias"])
    return [logits], statistics


def loss(outputs: List[tf.Tensor], batch: Dict[str, Any], facts: Dict[str, Any]) -> tf.Tensor:
    """Mean cross entropy over the batch. Labels are classes, or probabilities of all of them."""
    (logits,) = outputs
    labels = batch["labels"]
    entropy = (
        tf.nn.sparse_softmax_cross_entropy_with_logits
        if labels.dtype.is_integer
        else tf.nn.softmax_cross_entropy_with_logits_v2
    )
    return tf.reduce_mean(entropy(labels=labels, logits=logits))


def _blocks(stages: Sequence[Tuple[int, int]]) -> Iterator[Tuple[str, int, int, int]]:
    """Name, channels in, width and stride of each block. ``stages``: width and number of blocks."""
    channels, number = stages[0][0], 0
    for stage, (width, depth) in enumerate(stages):
        for block in range(depth):
            yield f"blocks.{number}", channels, width, 2 if stage > 0 and block == 0 else 1
            channels = width * EXPANSION
            number += 1


def _add_convolution(found: Variables, name: str, kernel: int, inner: int, outer: int) -> None:
    deviation = math.sqrt(2.0 / (kernel * kernel * outer))  # He's, over the outputs
    found[f"{name}.weight"] = normal((kernel, kernel, inner, outer), deviation)


def _add_norm(found: Variables, name: str, channels: int) -> None:
    found[f"{name}.weight"] = constant((channels,), 1.0)
    found[f"{name}.bias"] = constant((channels,), 0.0)
    found[f"{name}.running_mean"] = constant((channels,), 0.0, trainable=False)
    found[f"{name}.running_var"] = constant((channels,), 1.0, trainable=False)
