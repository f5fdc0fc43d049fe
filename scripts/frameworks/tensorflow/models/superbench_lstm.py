"""SuperBench's LSTM: Keras's own layers, with a dense layer on the last step."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import keras
import tensorflow as tf
from keras import layers

from .losses import loss as loss


class LSTM(layers.LSTM):
    """LSTM with a second bias vector, as in ``torch.nn.LSTM``, cuDNN and the other frameworks.

    Keras keeps one. A step adds the sum of both, computed once for all steps."""

    def build(self, sequences_shape: Tuple[Optional[int], ...]) -> None:
        super().build(sequences_shape)
        self.recurrent_bias = self.add_weight(
            shape=(4 * self.units,), initializer=_uniform(self.units), name="recurrent_bias"
        )

    def inner_loop(self, *arguments: Any, **options: Any) -> Any:
        cell, bias = self.cell, self.cell.bias
        cell.bias = tf.convert_to_tensor(bias) + tf.convert_to_tensor(self.recurrent_bias)
        try:
            return super().inner_loop(*arguments, **options)
        finally:
            cell.bias = bias


class Classifier(keras.Model):
    """Features (batch, sequence, features) to float32 logits (batch, classes)."""

    def __init__(self, hyper: Dict[str, Any]) -> None:
        super().__init__()
        hidden, count = hyper["hidden"], hyper["layers"]
        self.recurrent = [
            LSTM(
                hidden,
                kernel_initializer=_uniform(hidden),
                recurrent_initializer=_uniform(hidden),
                bias_initializer=_uniform(hidden),
                unit_forget_bias=False,  # else the forget gate's part of the bias starts at 1
                return_sequences=layer + 1 < count,
                name=f"lstm.l{layer}",
            )
            for layer in range(count)
        ]
        self.classifier = layers.Dense(
            hyper["classes"],
            kernel_initializer=_uniform(hidden),
            bias_initializer=_uniform(hidden),
            name="classifier",
        )
        for layer, inputs in zip(self.recurrent, [hyper["features"]] + [hidden] * (count - 1)):
            layer.build((None, None, inputs))
        self.classifier.build((None, hidden))
        self.built = True

    def call(self, features: tf.Tensor, training: bool = False) -> tf.Tensor:
        x = features
        for layer in self.recurrent:
            x = layer(x, training=training)
        return tf.cast(self.classifier(x), tf.float32)


def _uniform(hidden: int) -> keras.initializers.Initializer:
    """Return PyTorch's uniform initializer, a new one for each array: a Keras initializer
    repeats its values."""
    bound = hidden**-0.5
    return keras.initializers.RandomUniform(-bound, bound)


def build(model_config: Dict[str, Any]) -> keras.Model:
    return Classifier(model_config["hyperparameters"])


def inputs(batch: Dict[str, tf.Tensor]) -> tf.Tensor:
    return batch["features"]
