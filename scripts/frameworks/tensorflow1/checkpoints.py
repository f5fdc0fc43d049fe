"""A training on disk: all variables of its graph, in their order, as numpy arrays. Not by
``tf.train.Saver``, which would make the graph of a step larger by its own operations."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import tensorflow as tf


def save(path: str, variables: Sequence[tf.Variable], session: tf.Session) -> None:
    with open(path, "wb") as file:  # a name would get a suffix
        np.savez(file, *session.run(list(variables)))


def load(path: str, variables: Sequence[tf.Variable], session: tf.Session) -> None:
    """Load the ``variables`` of a training from the file ``path``. Raises ValueError for a file of
    another training."""
    with np.load(path) as kept:
        arrays: Any = [kept[f"arr_{number}"] for number in range(len(kept.files))]
    if len(arrays) != len(variables):
        raise ValueError(f"{path} has {len(arrays)} arrays, the training {len(variables)}")
    for variable, array in zip(variables, arrays):
        variable.load(array, session)
