"""A training on disk: the leaves of its state, in the order of ``jax.tree``, as numpy arrays. Of an
array of all ranks each keeps its own part."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .parallel.data_parallel import local


def save(path: str, state: Any) -> None:
    with open(path, "wb") as file:  # a name would get a suffix
        np.savez(file, *[np.asarray(leaf) for leaf in jax.tree.leaves(local(state))])


def load(path: str, state: Any) -> Any:
    """Return a state like ``state``, on its devices, from a file. Raises ValueError for the file of
    another training."""
    leaves, tree = jax.tree.flatten(state)
    with np.load(path) as kept:
        if len(kept.files) != len(leaves):
            raise ValueError(f"{path} has {len(kept.files)} arrays, the training {len(leaves)}")
        restored = [_like(leaf, kept[f"arr_{number}"]) for number, leaf in enumerate(leaves)]
    return jax.tree.unflatten(tree, restored)


def _like(leaf: jax.Array, array: np.ndarray) -> jax.Array:
    """Return ``leaf`` with ``array`` as this rank's part."""
    own = local(leaf)
    if array.dtype.kind == "V":  # numpy writes bfloat16 as bytes
        array = array.view(own.dtype)
    if array.shape != own.shape or array.dtype != own.dtype:
        raise ValueError(f"an array is {array.dtype} {array.shape}, not {own.dtype} {own.shape}")
    # own memory: that of the file's array would be given away with the state
    part = jax.device_put(jax.numpy.array(array), own.sharding)
    return jax.make_array_from_single_device_arrays(leaf.shape, leaf.sharding, [part])
