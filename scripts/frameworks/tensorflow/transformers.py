"""What BERT and the causal language models have in common."""

from __future__ import annotations

from typing import Optional

import keras
import tensorflow as tf

MASKED_SCORE = -10000.0  # the value of BERT's authors; unlike -1e9 it fits float16


def initializer(deviation: float) -> keras.initializers.Initializer:
    """A new one for each weight: a Keras initializer repeats its values at every use."""
    return keras.initializers.RandomNormal(stddev=deviation)


def tied_logits(
    x: tf.Tensor, token: keras.layers.Embedding, bias: Optional[keras.Variable] = None
) -> tf.Tensor:
    """(batch, positions, hidden) to (batch, positions, vocabulary), by the token embedding."""
    flat = tf.reshape(x, (-1, x.shape[-1]))
    logits = tf.matmul(flat, tf.cast(token.embeddings, x.dtype), transpose_b=True)
    if bias is not None:  # next to the product, with which TensorFlow fuses it
        logits += tf.cast(bias, x.dtype)
    return tf.reshape(logits, (-1, tf.shape(x)[1], logits.shape[-1]))
