"""A training on disk: the leaves of its state, in the order of ``jax.tree``, as numpy arrays."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def save(path: str, state: Any) -> None:
    with open(path, "wb") as file:  # a name would get a suffix
        np.savez(file, *[np.asarray(leaf) for leaf in jax.tree.leaves(state)])


def load(path: str, state: Any) -> Any:
    """One like ``state``, on its devices. Raises ValueError for a file of another."""
    leaves, tree = jax.tree.flatten(state)
    with np.load(path) as kept:
        if len(kept.files) != len(leaves):
            raise ValueError(f"{path} has {len(kept.files)} arrays, the training {len(leaves)}")
        found = [_like(leaf, kept[f"arr_{number}"]) for number, leaf in enumerate(leaves)]
    return jax.tree.unflatten(tree, found)


def _like(leaf: jax.Array, array: np.ndarray) -> jax.Array:
    if array.dtype.kind == "V":  # numpy writes bfloat16 as bytes
        array = array.view(leaf.dtype)
    if array.shape != leaf.shape or array.dtype != leaf.dtype:
        raise ValueError(f"an array is {array.dtype} {array.shape}, not {leaf.dtype} {leaf.shape}")
    # own memory: that of the file's array would be given away with the state
    return jax.device_put(jax.numpy.array(array), leaf.sharding)
