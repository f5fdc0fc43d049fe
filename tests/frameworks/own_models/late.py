"""Keras model with layers that are made in training alone."""

import keras
import tensorflow as tf

FRAMEWORK = "tensorflow"


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.norm, self.out = keras.layers.BatchNormalization(), keras.layers.Dense(4)
        self.late = keras.layers.Dense(8)

    def call(self, x, training=False):
        x = self.norm(x, training=training)
        return self.out(self.late(x) if training else x)


def make(batch_size):
    inputs = tf.random.normal((batch_size, 8))
    targets = tf.random.uniform((batch_size,), maxval=4, dtype=tf.int32)
    return Net(), (inputs, targets), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
