"""A user's own model as a definition: a Keras model from a file or from keras.applications."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Mapping

import keras
import numpy as np
import tensorflow as tf
from harness.adapter import FLOAT64, OwnDefinition

from .. import steps

_DROPPING = (
    keras.layers.AlphaDropout,
    keras.layers.Dropout,
    keras.layers.GaussianDropout,
    keras.layers.SpatialDropout1D,
    keras.layers.SpatialDropout2D,
    keras.layers.SpatialDropout3D,
)
_RECURRENT = (keras.layers.GRUCell, keras.layers.LSTMCell, keras.layers.SimpleRNNCell)


@contextlib.contextmanager
def computing_in(dtype: str) -> Iterator[None]:
    """Let Keras create and draw everything in ``dtype`` until the context ends."""
    policy, width = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_dtype_policy(dtype)
    keras.config.set_floatx(dtype)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(policy)
        keras.config.set_floatx(width)


class Classifier:
    """An image classifier from keras.applications without trained weights, with the batch and the
    loss that a user's file would declare."""

    def __init__(self, declaration: Dict[str, Any]) -> None:
        self._name = declaration["source"].partition(":")[2]

    def make(self, batch_size: int) -> Any:
        new = getattr(keras.applications, self._name)
        model = new(weights=None, classifier_activation=None)
        images = tf.random.normal((batch_size, *model.input_shape[1:]))
        labels = tf.random.uniform((batch_size,), maxval=model.output_shape[-1], dtype=tf.int32)
        return model, (images, labels), keras.losses.SparseCategoricalCrossentropy(from_logits=True)


class Definition(OwnDefinition):
    OPTIMIZERS, LIBRARY = keras.optimizers.Optimizer, "keras.optimizers"

    def _library_model(self) -> Any:
        return Classifier(self._own)

    def _first(self, inputs: Any) -> Any:
        return tf.nest.flatten(inputs)[0]

    def batch(self, drawn: Dict[str, Any]) -> Dict[str, np.ndarray]:
        """Return this rank's batch, drawn with the seed in ``drawn``."""
        keras.utils.set_random_seed(int(drawn["seed"]))
        with computing_in("float32"):  # in another dtype it would draw other numbers
            _, inputs, targets, _ = self._made()
        self._structure = (inputs, targets)
        arrays = [np.asarray(tensor) for tensor in tf.nest.flatten(self._structure)]
        if self.case.precision == FLOAT64:
            arrays = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
        self._arrays = {f"{number:03d}": array for number, array in enumerate(arrays)}
        return self._arrays

    def build(self) -> keras.Model:
        if self.case.precision != FLOAT64:
            return self._built()
        with computing_in("float32"):  # draws the initial weights in float32
            initial = self._built().get_weights()
        with computing_in("float64"):
            model = self._built()
        model.set_weights(initial)
        return model

    def _built(self) -> keras.Model:
        """Return the model with all of its weights, which it may create at its first call."""
        model, inputs, _, self._loss = self._made()
        if not isinstance(model, keras.Model):
            raise TypeError(f"make returned {type(model).__name__} as the model, not a keras.Model")
        if not self._own.get("dropout", True):
            for layer in model._flatten_layers():
                if isinstance(layer, _DROPPING):
                    layer.rate = 0.0
                elif isinstance(layer, _RECURRENT):
                    layer.dropout = layer.recurrent_dropout = 0.0
        model(inputs, training=False)
        weights = enumerate(model.weights)
        self._model = model
        self._names = {id(weight): f"{number}.{weight.name}" for number, weight in weights}
        return model

    def name(self, weight: Any) -> str:
        """Return a variable's name by its index in the model: Keras numbers layers anew for each
        model."""
        return self._names[id(weight)]

    def inputs(self, batch: Mapping[str, tf.Tensor]) -> Any:
        return self._batch_of(batch)[0]

    def _batch_of(self, batch: Mapping[str, tf.Tensor]) -> Any:
        return tf.nest.pack_sequence_as(self._structure, [batch[name] for name in self._arrays])

    def loss(self, outputs: Any, batch: Dict[str, tf.Tensor]) -> tf.Tensor:
        """Return the user's loss, from outputs in float32 at least, like those of our models."""
        targets = self._batch_of(batch)[1]
        value = self._loss(targets, tf.nest.map_structure(_widened, outputs))
        if value.shape.rank:
            raise TypeError("the loss must be one number")
        if isinstance(self._loss, keras.losses.Loss):
            # Keras's loss objects divide by the number of ranks; the step does so, too
            value *= tf.distribute.get_strategy().num_replicas_in_sync
        # penalties of regularizers and add_loss, as in Keras's training
        for penalty in self._model.losses:
            value += tf.cast(penalty, value.dtype)
        return value

    def optimizer(self) -> keras.optimizers.Optimizer:
        """Return the optimizer of the user's file, or the default one."""
        own: Any = self._own_optimizer()
        return own or steps.optimizer_of(self.model_config, self.name)

    def arrays(self) -> List[np.ndarray]:
        """Return this rank's inputs and targets."""
        return list(self._arrays.values())


def _widened(tensor: tf.Tensor) -> tf.Tensor:
    return tf.cast(tensor, tf.float32) if tensor.dtype in (tf.bfloat16, tf.float16) else tensor
