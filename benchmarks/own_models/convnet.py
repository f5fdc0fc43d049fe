"""A small convolutional network of Keras with batch norm."""

import keras
import tensorflow as tf

FRAMEWORK = "tensorflow"
CLASSES, SIZE = 10, 32


def make(batch_size):
    layers = keras.layers
    model = keras.Sequential()
    for channels in (32, 64, 64):
        model.add(layers.Conv2D(channels, 3, padding="same", use_bias=False))
        model.add(layers.BatchNormalization())
        model.add(layers.ReLU())
        model.add(layers.MaxPooling2D())
    model.add(layers.GlobalAveragePooling2D())
    model.add(layers.Dense(CLASSES))
    images = tf.random.normal((batch_size, SIZE, SIZE, 3))
    labels = tf.random.uniform((batch_size,), maxval=CLASSES, dtype=tf.int32)
    return model, (images, labels), keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def optimizer():
    return keras.optimizers.SGD(0.01, momentum=0.9)
