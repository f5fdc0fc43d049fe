"""Model with two inputs, dropout in a cell, a penalty of 100, and a head without a loss."""

import keras
import tensorflow as tf

FRAMEWORK = "tensorflow"


def make(batch_size):
    layers = keras.layers
    words, more = keras.Input((6,), dtype="int32", name="words"), keras.Input((8,), name="more")
    x = layers.GRU(8, dropout=0.5)(layers.Embedding(50, 8)(words))
    x = layers.Dense(1, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L2(12.5))(
        layers.Add()([x, more])
    )
    model = keras.Model({"words": words, "more": more}, {"value": x, "other": layers.Dense(2)(x)})
    inputs = {
        "words": tf.random.uniform((batch_size, 6), maxval=50, dtype=tf.int32),
        "more": tf.random.normal((batch_size, 8)),
    }
    return model, (inputs, tf.random.normal((batch_size, 1))), loss


def loss(targets, outputs):
    return tf.reduce_mean(tf.tanh(tf.square(outputs["value"] - targets)))
