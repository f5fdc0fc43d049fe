"""ResNet-50 v1.5 (He et al., 2016, arXiv:1512.03385; the stride of 2 moved to the 3x3 convolution).

``keras.applications.ResNet50`` is v1, with convolution biases: another network.
"""

from __future__ import annotations

from typing import Any, Dict

import keras
import tensorflow as tf
from keras import layers

STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))  # (width, blocks) of each
EXPANSION = 4


def build(facts: Dict[str, Any]) -> keras.Model:
    """Images (batch, 224, 224, 3) to float32 logits (batch, classes)."""
    hyperparameters = facts["hyperparameters"]
    shape = next(entry["shape"] for entry in facts["inputs"] if entry["name"] == "images")
    images = keras.Input(shape[1:], name="images")
    x = _convolution(images, 64, kernel=7, stride=2)
    x = layers.ReLU()(_normalization(x, hyperparameters))
    # After the ReLU nothing is below zero, so padding with zeros is padding with -infinity.
    x = layers.MaxPooling2D(3, strides=2)(layers.ZeroPadding2D(1)(x))
    for stage, (width, blocks) in enumerate(STAGES):
        for block in range(blocks):
            x = _bottleneck(x, width, 2 if stage > 0 and block == 0 else 1, hyperparameters)
    x = layers.GlobalAveragePooling2D()(x)
    # Uniform in +-1/sqrt(inputs), as in torchvision.
    uniform = keras.initializers.VarianceScaling(1 / 3, "fan_in", "uniform")
    x = layers.Dense(hyperparameters["classes"], kernel_initializer=uniform)(x)
    return keras.Model(images, layers.Activation("linear", dtype="float32")(x))


def inputs(batch: Dict[str, tf.Tensor]) -> tf.Tensor:
    return batch["images"]


def loss(outputs: tf.Tensor, batch: Dict[str, tf.Tensor]) -> tf.Tensor:
    """Mean cross entropy over the batch."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=batch["labels"], logits=outputs)
    )


def _bottleneck(x: Any, width: int, stride: int, hyperparameters: Dict[str, Any]) -> Any:
    shortcut = x
    if stride != 1 or x.shape[-1] != width * EXPANSION:
        shortcut = _convolution(x, width * EXPANSION, kernel=1, stride=stride)
        shortcut = _normalization(shortcut, hyperparameters)
    x = _convolution(x, width, kernel=1, stride=1)
    x = layers.ReLU()(_normalization(x, hyperparameters))
    x = _convolution(x, width, kernel=3, stride=stride)
    x = layers.ReLU()(_normalization(x, hyperparameters))
    x = _convolution(x, width * EXPANSION, kernel=1, stride=1)
    x = _normalization(x, hyperparameters)
    return layers.ReLU()(layers.Add()([x, shortcut]))


def _convolution(x: Any, filters: int, kernel: int, stride: int) -> Any:
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
    )(x)


def _normalization(x: Any, hyperparameters: Dict[str, Any]) -> Any:
    # Keras's momentum is the share of the old statistics, PyTorch's that of the new ones.
    return layers.BatchNormalization(
        momentum=1.0 - hyperparameters["batch_norm_momentum"],
        epsilon=hyperparameters["batch_norm_epsilon"],
    )(x)
