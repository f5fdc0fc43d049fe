"""Layers of networks without arrays, in TensorFlow: the common part of TensorFlow 1 and 2."""

from __future__ import annotations

from typing import Any, Callable, Dict, Tuple

import tensorflow as tf

from networks.layers import Layer


def padded(
    x: tf.Tensor, padding: Tuple[int, int], extra: Tuple[int, int] = (0, 0), value: Any = 0
) -> tf.Tensor:
    """Pad images. ``extra``: additional rows below and columns on the right."""
    if not any((*padding, *extra)):
        return x
    sides = [[size, size + more] for size, more in zip(padding, extra)]
    return tf.pad(x, [[0, 0], *sides, [0, 0]], constant_values=value)


def _max_pool(layer: Layer, x: tf.Tensor) -> tf.Tensor:
    x = padded(x, (layer.padding,) * 2, layer.extra, x.dtype.min)
    return tf.nn.max_pool2d(x, layer.kernel, layer.stride, "VALID")


def _average_pool(layer: Layer, x: tf.Tensor) -> tf.Tensor:
    x = padded(x, (layer.padding,) * 2)
    return tf.nn.avg_pool2d(x, layer.kernel, layer.stride, "VALID")


def _adaptive_average_pool(layer: Layer, x: tf.Tensor) -> tf.Tensor:
    size = layer.size
    for axis in (1, 2):
        extent = layer.in_shape[axis - 1]
        ends = [(i * extent // size, -((i + 1) * extent // -size)) for i in range(size)]
        parts = [x[:, a:b] if axis == 1 else x[:, :, a:b] for a, b in ends]
        x = tf.concat([tf.reduce_mean(part, axis, keepdims=True) for part in parts], axis)
    return x


def _shuffle(layer: Layer, x: tf.Tensor) -> tf.Tensor:
    (height, width, channels), groups = layer.shape, layer.groups
    split = tf.reshape(x, (-1, height, width, groups, channels // groups))
    return tf.reshape(tf.transpose(split, (0, 1, 2, 4, 3)), (-1, height, width, channels))


#: Operations of layers without arrays.
OPERATIONS: Dict[str, Callable[..., tf.Tensor]] = {
    "relu": lambda layer, x: tf.nn.relu(x),
    "relu6": lambda layer, x: tf.nn.relu6(x),
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "adaptive_average_pool": _adaptive_average_pool,
    "global_average_pool": lambda layer, x: tf.reduce_mean(x, axis=(1, 2)),
    "flatten": lambda layer, x: tf.reshape(x, (-1, layer.channels)),
    "add": lambda layer, x, y: x + y,
    "concatenate": lambda layer, *parts: tf.concat(parts, -1),
    "channels": lambda layer, x: x[..., layer.begin : layer.end],
    "shuffle": _shuffle,
}
