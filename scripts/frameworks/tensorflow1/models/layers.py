"""Layers of models: functions of activations and of variables by their names."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

import tensorflow as tf
from harness.adapter import Definition
from networks import Weight, total_loss

from ..steps import Variables, variable

INITIALIZERS: Dict[str, Callable[..., tf.Tensor]] = {
    "normal": lambda shape, deviation: tf.random.normal(shape, stddev=deviation),
    "uniform": lambda shape, bound: tf.random.uniform(shape, -bound, bound),
    "constant": tf.fill,
}


def drawn(weights: Mapping[str, Weight]) -> Variables:
    """Return a variable with its initial values for each of the ``weights``."""
    variables = {}
    for name, weight in weights.items():
        distribution, value = weight.initial
        initial = INITIALIZERS[distribution](weight.shape, value)
        variables[name] = variable(initial, weight.trained)
    return variables


def dense(x: tf.Tensor, variables: Variables, name: str) -> tf.Tensor:
    """Map ``x`` (rows, in) to (rows, out) by a linear layer, with a bias if there is one."""
    y = tf.matmul(x, variables[f"{name}.weight"])
    bias = variables.get(f"{name}.bias")
    return y if bias is None else tf.nn.bias_add(y, bias)


def batch_norm(
    x: tf.Tensor, variables: Variables, name: str, epsilon: float, training: bool
) -> Tuple[tf.Tensor, Dict[str, tf.Tensor]]:
    """Return images ``x`` batch-normalised over all but the last axis. In training, return the
    batch's mean and variance too, by the names of their running statistics."""
    means = (f"{name}.running_mean", f"{name}.running_var")
    # Fused, as TensorFlow's performance guide recommends; tf.nn.fused_batch_norm would raise a
    # smaller epsilon to 1.001e-5.
    y, *of_batch = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=variables[f"{name}.weight"],
        offset=variables[f"{name}.bias"],
        mean=[] if training else variables[means[0]],
        variance=[] if training else variables[means[1]],
        epsilon=epsilon,
        is_training=training,
    )[:3]
    return y, dict(zip(means, of_batch)) if training else {}


def layer_norm(x: tf.Tensor, variables: Variables, name: str, epsilon: float) -> tf.Tensor:
    """Return ``x`` normalised over its last axis, scaled and shifted."""
    mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
    scale, offset = variables[f"{name}.weight"], variables[f"{name}.bias"]
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, epsilon)


def rms_norm(x: tf.Tensor, variables: Variables, name: str, epsilon: float) -> tf.Tensor:
    """Divide the last axis by its root mean square."""
    square = tf.reduce_mean(tf.square(x), axis=-1, keepdims=True)
    return x * tf.math.rsqrt(square + epsilon) * variables[f"{name}.weight"]


def dropout(x: tf.Tensor, rate: float, training: bool) -> tf.Tensor:
    return tf.nn.dropout(x, rate=rate) if training else x


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the mean cross-entropy. Labels are class indices, or probabilities of all classes."""
    entropy = tf.nn.softmax_cross_entropy_with_logits_v2
    if labels.dtype.is_integer:
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return tf.reduce_mean(entropy(labels=labels, logits=logits))


class ModelDefinition(Definition):
    def loss(self, outputs: List[tf.Tensor], batch: Dict[str, Any]) -> tf.Tensor:
        return total_loss(
            outputs, batch, self.hyper, cross_entropy, lambda x: tf.transpose(x, (0, 2, 1))
        )
