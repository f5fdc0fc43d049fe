"""A training on disk: the leaves of its state, in the order of ``jax.tree``, as numpy arrays. Of an
array of all ranks each keeps its own part."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from harness.batch_input import load_arrays, save_arrays

from .parallel.data_parallel import local


def save(path: str, state: Any) -> None:
    save_arrays(path, [np.asarray(leaf) for leaf in jax.tree.leaves(local(state))])


def load(path: str, state: Any) -> Any:
    """Return a state like ``state``, on its devices, from a file."""
    leaves, tree = jax.tree.flatten(state)
    return jax.tree.unflatten(tree, map(_like, leaves, load_arrays(path, len(leaves))))


def _like(leaf: jax.Array, array: np.ndarray) -> jax.Array:
    """Return ``leaf`` with ``array`` as this rank's part."""
    own = local(leaf)
    if array.dtype.kind == "V":  # numpy writes bfloat16 as bytes
        array = array.view(own.dtype)
    # own memory: that of the file's array would be given away with the state
    part = jax.device_put(jax.numpy.array(array), own.sharding)
    return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, [part])
