"""A training on disk: all variables of its graph, in their order, as numpy arrays. Not by
``tf.train.Saver``, which would make the graph of a step larger by its own operations."""

from __future__ import annotations

from typing import Sequence

import tensorflow as tf
from harness.batch_input import load_arrays, save_arrays


def save(path: str, variables: Sequence[tf.Variable], session: tf.Session) -> None:
    save_arrays(path, session.run(list(variables)))


def load(path: str, variables: Sequence[tf.Variable], session: tf.Session) -> None:
    for variable, array in zip(variables, load_arrays(path, len(variables))):
        variable.load(array, session)
