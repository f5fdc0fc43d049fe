"""Definitions that changed files of TensorFlow use."""

import keras
import tensorflow as tf


def half(x):
    return tf.cast(tf.cast(x, tf.float16), x.dtype)


class Named(keras.Model):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def call(self, inputs, training=None):
        logits = self.model(inputs["x"], training=training)
        return {"logits": [logits], "norm": tf.reduce_mean(tf.square(logits))}


def loss(targets, outputs):
    assert outputs["norm"].dtype in (tf.float32, tf.float64)
    crossed = keras.losses.sparse_categorical_crossentropy(
        targets[0], outputs["logits"][0], from_logits=True
    )
    return tf.reduce_mean(crossed) + outputs["norm"]
