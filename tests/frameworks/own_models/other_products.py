"""Layers whose products are not matrices by matrices."""

import keras
import tensorflow as tf

FRAMEWORK = "tensorflow"


def make(batch_size):
    layers = keras.layers
    image = keras.Input((4, 4, 4, 3))
    x = layers.Conv3D(5, 2, use_bias=False)(image)
    x = layers.Conv2DTranspose(6, 2, strides=2, use_bias=False)(layers.Reshape((9, 3, 5))(x))
    x = layers.Lambda(lambda x: tf.einsum("bhwc,bhwd->bcd", x, x))(x)
    model = keras.Model(image, x)
    return model, (tf.random.normal((batch_size, 4, 4, 4, 3)), tf.zeros(())), loss


def loss(targets, outputs):
    return tf.reduce_mean(outputs)
