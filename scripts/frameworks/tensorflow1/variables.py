"""A model's variables, by the names and in the layouts that all frameworks share, which are
TensorFlow's own: convolutions (height, width, in, out), dense layers (in, out)."""

from __future__ import annotations

from typing import Any, Dict, Sequence

import tensorflow as tf

Variables = Dict[str, Any]


def normal(shape: Sequence[int], deviation: float) -> tf.Variable:
    return _variable(tf.random.normal(shape, stddev=deviation))


def uniform(shape: Sequence[int], bound: float) -> tf.Variable:
    return _variable(tf.random.uniform(shape, -bound, bound))


def constant(shape: Sequence[int], value: float, trainable: bool = True) -> tf.Variable:
    return _variable(tf.fill(shape, value), trainable)


def _variable(initial: tf.Tensor, trainable: bool = True) -> tf.Variable:
    # Resource variables, which XLA needs; TensorFlow 1's default are reference variables.
    return tf.Variable(initial, trainable=trainable, use_resource=True)


def empty(shape: Sequence[int], dtype: Any) -> tf.Variable:
    """Return a variable of zeros on the device, for values that are assigned later."""
    return _variable(tf.zeros(shape, dtype), trainable=False)


def resident(batch: Dict[str, Any]) -> Dict[str, tf.Variable]:
    """Return a variable on the device for each array of ``batch``, still empty: data that were fed
    would be copied in every step, and a constant is part of the graph, which ends at 2 GiB."""
    return {name: empty(array.shape, array.dtype) for name, array in batch.items()}


def load(variables: Variables, arrays: Dict[str, Any], session: tf.Session) -> None:
    """Load arrays into the ``variables`` of the same names."""
    for name, variable in variables.items():
        variable.load(arrays[name], session)
