"""A model's weights by the names that all frameworks share; the layouts are Keras's own.

The name of a weight is the path that Keras gives it, ``blocks.0.conv1/kernel`` say, which joins
the names that the model's module gives to its layers.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable

import keras

# What Keras calls the weights of its layers; the layer `decoder_bias` is named for its only one.
LEAVES = {
    "kernel": ".weight",
    "embeddings": ".weight",
    "bias": ".bias",
    "gamma": ".weight",
    "beta": ".bias",
    "moving_mean": ".running_mean",
    "moving_variance": ".running_var",
    "value": "",
}


def shared_name(variable: keras.Variable) -> str:
    """Raises KeyError for a weight that no layer of the models has."""
    layer, _, leaf = variable.path.rpartition("/")
    return layer.replace("/", ".") + LEAVES[leaf]


def load(model: keras.Model, weights: Dict[str, Any]) -> None:
    """Raises KeyError and ValueError where ``weights`` do not fit ``model``."""
    left = set(weights)
    for variable in model.weights:  # with the running statistics, without the state of dropout
        name = shared_name(variable)
        if tuple(variable.shape) != weights[name].shape:
            raise ValueError(f"{name} is {tuple(variable.shape)}, not {weights[name].shape}")
        variable.assign(weights[name])
        left.remove(name)
    if left:
        raise KeyError(f"the model has no {sorted(left)}")


def arrays(model: keras.Model) -> Dict[str, Any]:
    """Copies of the trainable weights."""
    return {shared_name(variable): variable.numpy().copy() for variable in model.trainable_weights}


def gradients(model: keras.Model, found: Iterable[Any], scale: float) -> Dict[str, Any]:
    """``found``, in the order of the model's trainable weights, divided by ``scale``."""
    return {
        shared_name(variable): gradient.numpy() / scale
        for variable, gradient in zip(model.trainable_weights, found)
    }
