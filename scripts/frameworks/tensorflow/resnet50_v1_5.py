"""ResNet-50 v1.5 (He et al., 2016, arXiv:1512.03385; the stride of 2 moved to the 3x3 convolution).

``keras.applications.ResNet50`` is v1, with convolution biases: another network. What has weights
has a name, which is theirs in ``adapter.py``.
"""

from __future__ import annotations

import itertools
from typing import Any, Dict

import keras
import tensorflow as tf
from keras import layers

EXPANSION = 4


def build(facts: Dict[str, Any]) -> keras.Model:
    """Images (batch, 224, 224, 3) to float32 logits (batch, classes)."""
    hyperparameters = facts["hyperparameters"]
    shape = next(entry["shape"] for entry in facts["inputs"] if entry["name"] == "images")
    images = keras.Input(shape[1:], name="images")
    x = _convolution(images, hyperparameters["stages"][0][0], kernel=7, stride=2, name="conv")
    x = layers.ReLU()(_normalization(x, hyperparameters, name="norm"))
    # After the ReLU nothing is below zero, so padding with zeros is padding with -infinity.
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))
    names = (f"blocks.{number}" for number in itertools.count())
    for stage, (width, blocks) in enumerate(hyperparameters["stages"]):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = _bottleneck(x, width, stride, hyperparameters, next(names))
    x = layers.GlobalAveragePooling2D()(x)
    # Uniform in +-1/sqrt(inputs), as in torchvision.
    uniform = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
    x = layers.Dense(hyperparameters["classes"], kernel_initializer=uniform, name="classifier")(x)
    return keras.Model(images, layers.Activation("linear", dtype="float32")(x))


def inputs(batch: Dict[str, tf.Tensor]) -> tf.Tensor:
    return batch["images"]


def loss(outputs: tf.Tensor, batch: Dict[str, tf.Tensor], facts: Dict[str, Any]) -> tf.Tensor:
    """Mean cross entropy over the batch. Labels are classes, or probabilities of all of them."""
    labels = batch["labels"]
    entropy = (
        tf.nn.sparse_softmax_cross_entropy_with_logits
        if labels.dtype.is_integer
        else tf.nn.softmax_cross_entropy_with_logits
    )
    return tf.reduce_mean(entropy(labels=labels, logits=outputs))


def _bottleneck(x: Any, width: int, stride: int, hyperparameters: Dict[str, Any], name: str) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != width * EXPANSION:
        shortcut = _convolution(x, width * EXPANSION, 1, stride, f"{name}.shortcut.conv")
        shortcut = _normalization(shortcut, hyperparameters, f"{name}.shortcut.norm")
    x = _convolution(x, width, 1, 1, f"{name}.conv1")
    x = layers.ReLU()(_normalization(x, hyperparameters, f"{name}.norm1"))
    x = _convolution(x, width, 3, stride, f"{name}.conv2")
    x = layers.ReLU()(_normalization(x, hyperparameters, f"{name}.norm2"))
    x = _convolution(x, width * EXPANSION, 1, 1, f"{name}.conv3")
    x = _normalization(x, hyperparameters, f"{name}.norm3")
    return layers.ReLU()(layers.Add()([x, shortcut]))


def _convolution(x: Any, filters: int, kernel: int, stride: int, name: str) -> Any:
    padding = "same"
    if kernel > 1 and stride > 1:
        # TensorFlow's "same" pads an even image on one side only when it strides.
        x = layers.ZeroPadding2D(kernel // 2)(x)
        padding = "valid"
    return layers.Conv2D(
        filters,
        kernel,
        strides=stride,
        padding=padding,
        use_bias=False,
        kernel_initializer=keras.initializers.VarianceScaling(
            2.0, mode="fan_out", distribution="untruncated_normal"
        ),
        name=name,
    )(x)


def _normalization(x: Any, hyperparameters: Dict[str, Any], name: str) -> Any:
    # Keras's momentum is the share of the old statistics, PyTorch's that of the new ones.
    return layers.BatchNormalization(
        momentum=1.0 - hyperparameters["batch_norm_momentum"],
        epsilon=hyperparameters["batch_norm_epsilon"],
        name=name,
    )(x)
