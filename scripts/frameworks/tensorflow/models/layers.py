"""Initial values and parts that models share, and the loss of all but ELECTRA."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

import keras
import tensorflow as tf
from harness.adapter import Definition
from networks import total_loss

INITIALIZERS: Dict[str, Callable[[float], keras.initializers.Initializer]] = {
    "normal": lambda deviation: keras.initializers.RandomNormal(stddev=deviation),
    "uniform": lambda bound: keras.initializers.RandomUniform(-bound, bound),
    "constant": keras.initializers.Constant,
}


def initializer(distribution: str, value: float) -> keras.initializers.Initializer:
    """Return a new initializer for each weight, because a Keras initializer repeats its values at
    every use."""
    return INITIALIZERS[distribution](value)


def tied_logits(
    x: tf.Tensor, token: keras.layers.Embedding, bias: Optional[keras.Variable] = None
) -> tf.Tensor:
    """Return logits (batch, positions, vocabulary) of ``x`` (batch, positions, hidden), by the
    token embedding."""
    flat = tf.reshape(x, (-1, x.shape[-1]))
    logits = tf.matmul(flat, tf.cast(token.embeddings, x.dtype), transpose_b=True)
    if bias is not None:  # directly after the matmul, so that TensorFlow fuses both
        logits += tf.cast(bias, x.dtype)
    return tf.reshape(logits, (-1, tf.shape(x)[1], logits.shape[-1]))


def attended(
    query: tf.Tensor,
    key: tf.Tensor,
    value: tf.Tensor,
    added: Optional[tf.Tensor],
    dropped: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> tf.Tensor:
    """Return the attention, in the shape (batch, heads, sequence, size). ``added``: mask added to
    the scores; ``dropped``: dropout of the probabilities.

    Query heads that share a key head become further rows of one matmul, so that keys are not
    copied."""
    heads, groups, size = query.shape[1], key.shape[1], query.shape[3]
    length = tf.shape(query)[2]
    rows = tf.reshape(query * size**-0.5, (-1, groups, heads // groups * length, size))
    scores = tf.matmul(rows, key, transpose_b=True)
    apart = tf.reshape(scores, (-1, heads, length, tf.shape(key)[2]))
    weights = dropped(tf.nn.softmax(apart if added is None else apart + added))
    context = tf.matmul(tf.reshape(weights, tf.shape(scores)), value)
    return tf.reshape(context, (-1, heads, length, size))


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the mean cross-entropy. Labels are class indices, or probabilities of all classes."""
    entropy = tf.nn.softmax_cross_entropy_with_logits
    if labels.dtype.is_integer:
        entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return tf.reduce_mean(entropy(labels=labels, logits=logits))


class ModelDefinition(Definition):
    def loss(self, outputs: Any, batch: Dict[str, tf.Tensor]) -> tf.Tensor:
        every = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return total_loss(
            every, batch, self.hyper, cross_entropy, lambda x: tf.transpose(x, (0, 2, 1))
        )
