"""The loss of all models but ELECTRA."""

from __future__ import annotations

from typing import Any, Dict

import tensorflow as tf
from networks.losses import total_loss


def cross_entropy(logits: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Return the mean. Labels are class indices, or probabilities of all classes."""
    sparse = labels.dtype.is_integer
    entropy = (
        tf.nn.sparse_softmax_cross_entropy_with_logits
        if sparse
        else tf.nn.softmax_cross_entropy_with_logits
    )
    return tf.reduce_mean(entropy(labels=labels, logits=logits))


def loss(outputs: Any, batch: Dict[str, tf.Tensor], model_config: Dict[str, Any]) -> tf.Tensor:
    every = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    hyper = model_config["hyperparameters"]
    return total_loss(every, batch, hyper, cross_entropy, lambda x: tf.transpose(x, (0, 2, 1)))
