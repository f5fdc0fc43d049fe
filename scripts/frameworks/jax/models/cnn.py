"""A convolutional network, layer by layer as ``scripts/networks`` describes it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Tuple

import jax
import jax.numpy as jnp
import networks
import numpy as np
from harness.adapter import Case, RankContext
from jax import Array, lax
from networks import Layer, Weight
from networks.schedule import schedule

from .layers import Arrays, Key, ModelDefinition, batch_norm, convolution, dense, dropout, relu


def _max_pool(layer: Layer, x: Array) -> Array:
    lowest = np.array(-np.inf, x.dtype)
    return lax.reduce_window(x, lowest, lax.max, *_windows(layer, layer.extra))


def _average_pool(layer: Layer, x: Array) -> Array:
    wide = x.astype(jnp.float32)
    total = lax.reduce_window(wide, np.float32(0), lax.add, *_windows(layer, (0, 0)))
    return (total / layer.kernel**2).astype(x.dtype)


def _windows(layer: Layer, extra: Tuple[int, int]) -> Tuple[Any, Any, Any]:
    """Return sizes, strides and padding; ``extra``: additional padding below and on the right."""
    kernel, stride, padding = layer.window
    padded = [(0, 0), *((padding, padding + more) for more in extra), (0, 0)]
    return (1, kernel, kernel, 1), (1, stride, stride, 1), padded


def _adaptive_average_pool(layer: Layer, x: Array) -> Array:
    size = layer.size
    for axis in (1, 2):
        extent = x.shape[axis]
        parts = [
            lax.slice_in_dim(x, i * extent // size, -((i + 1) * extent // -size), axis=axis)
            for i in range(size)
        ]
        x = jnp.concatenate([part.mean(axis, keepdims=True) for part in parts], axis=axis)
    return x


def _shuffle(layer: Layer, x: Array) -> Array:
    split = x.reshape(*x.shape[:-1], layer.groups, -1)
    return jnp.swapaxes(split, -1, -2).reshape(x.shape)


#: Operations of layers with one input and no arrays of their own.
OPERATIONS = {
    "relu": lambda layer, x: relu(x),
    "relu6": lambda layer, x: jnp.where(x >= 6, jnp.full_like(x, 6), relu(x)),
    "max_pool": _max_pool,
    "average_pool": _average_pool,
    "adaptive_average_pool": _adaptive_average_pool,
    "global_average_pool": lambda layer, x: x.mean((1, 2)),
    "flatten": lambda layer, x: x.reshape(x.shape[0], -1),
    "channels": lambda layer, x: x[..., layer.begin : layer.end],
    "shuffle": _shuffle,
}


class Definition(ModelDefinition):
    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        super().__init__(case, model_config, rank_context)
        self._network = networks.describe(model_config)
        self._schedules = {train: schedule(self._network, train) for train in (True, False)}

    def weights(self) -> Mapping[str, Weight]:
        return networks.weights(self._network)

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        """Return logits (batch, classes), in training followed by those of the auxiliary heads, and
        the updated running statistics."""
        train = key is not None
        plan, after = self._schedules[train], dict(statistics)
        values: Any = [batch["images"].astype(dtype)] + [None] * (plan.places - 1)
        for number, call in enumerate(plan.calls):
            layer, inputs = call.layer, [values[name] for name in call.inputs]
            x = inputs[0]
            if layer.op == "convolution":
                y = convolution(
                    parameters, layer.name, x, layer.stride, layer.padding, layer.groups
                )
                if layer.bias:
                    y = y + parameters[f"{layer.name}.bias"].astype(dtype)
            elif layer.op == "batch_norm":
                y, mixed = batch_norm(parameters, statistics, layer, x, train)
                after.update(mixed)
            elif layer.op == "linear":
                y = dense(parameters, layer.name, x)
            elif layer.op == "dropout":
                own = None if key is None else jax.random.fold_in(key, number)
                y = dropout(x, layer.rate, own)
            elif layer.op == "add":
                y = inputs[0] + inputs[1]
            elif layer.op == "concatenate":
                y = jnp.concatenate(inputs, axis=-1)
            else:
                y = OPERATIONS[layer.op](layer, x)
            values[call.output] = y
            for name in call.freed:
                values[name] = None
        return tuple(values[name] for name in plan.outputs), after
