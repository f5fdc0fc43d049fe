"""A model's parameters by the names and in the layouts that all frameworks share: those in which
this adapter keeps them anyway."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import jax
import numpy as np
from harness.adapter import Place

from .parallel import local


def initial(
    definition: Any, facts: Dict[str, Any], place: Place
) -> Tuple[Dict[str, np.ndarray], Dict[str, np.ndarray], np.ndarray]:
    """Parameters and running statistics, the same in every rank, and the key of the rank's random
    numbers, so that dropout differs between ranks."""
    random = np.random.default_rng(place.seed)
    key = np.asarray(jax.random.PRNGKey(place.seed + 1 + place.rank))
    return definition.parameters(facts, random), definition.statistics(facts), key


def copies(tree: Any) -> List[np.ndarray]:
    """This rank's part of every array. Copied: a view would change with the next step, to which
    the array's memory is donated."""
    return [np.array(array) for array in jax.tree.leaves(local(tree))]


def named_copies(arrays: Dict[str, jax.Array]) -> Dict[str, np.ndarray]:
    """The same by name."""
    return {name: np.array(array) for name, array in local(arrays).items()}


def divided(
    weights: Dict[str, np.ndarray],
    parameters: Dict[str, jax.Array],
    statistics: Dict[str, jax.Array],
) -> Tuple[Dict[str, np.ndarray], Dict[str, np.ndarray]]:
    """``weights`` as parameters and running statistics, copied. Raises KeyError and ValueError
    where names or shapes are not those of the model."""
    left = set(weights) - set(parameters) - set(statistics)
    if left:
        raise KeyError(f"the model has no {sorted(left)}")

    def taken(wanted: Dict[str, jax.Array]) -> Dict[str, np.ndarray]:
        for name, array in wanted.items():
            if weights[name].shape != array.shape:
                raise ValueError(f"{name} is {array.shape}, not {weights[name].shape}")
        return {name: np.array(weights[name], np.float32) for name in wanted}

    return taken(parameters), taken(statistics)
