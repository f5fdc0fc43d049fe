"""SuperBench's LSTM, as ``torch.nn.LSTM`` defines it, with a linear layer on its last step. JAX has
no layer of its own that runs on CPUs: time is a ``lax.scan``, as in Flax."""

from __future__ import annotations

from typing import Any, Mapping, Tuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from networks import Weight, transformers
from networks.transformers import GATES

from .layers import Arrays, Key, ModelDefinition, dense


def _layer(parameters: Arrays, layer: int, x: Array) -> Array:
    """Map (sequence, batch, features) to (sequence, batch, hidden). Gates and cells are computed in
    float32, matmuls in the dtype of ``x``."""
    inner, recurrent = (
        parameters[f"lstm.weight_{kind}_l{layer}"].astype(x.dtype) for kind in ("ih", "hh")
    )
    biases = parameters[f"lstm.bias_ih_l{layer}"] + parameters[f"lstm.bias_hh_l{layer}"]
    # input matmuls of all steps in one: only the recurrent part needs the previous step
    entering = jnp.matmul(x, inner) + biases.astype(x.dtype)

    def step(carry: Tuple[Array, Array], entering: Array) -> Tuple[Tuple[Array, Array], Array]:
        output, cell = carry
        gates = (entering + jnp.matmul(output, recurrent)).astype(jnp.float32)
        write, keep, new, read = jnp.split(gates, GATES, axis=-1)  # input, forget, cell, output
        cell = jax.nn.sigmoid(keep) * cell + jax.nn.sigmoid(write) * jnp.tanh(new)
        output = (jax.nn.sigmoid(read) * jnp.tanh(cell)).astype(x.dtype)
        return (output, cell), output

    # zeros derived from x, so that in a program over several ranks they vary by rank, like x
    zeros = jnp.zeros_like(entering[0, :, : recurrent.shape[0]])
    return lax.scan(step, (zeros, zeros.astype(jnp.float32)), entering)[1]


class Definition(ModelDefinition):
    def weights(self) -> Mapping[str, Weight]:
        return transformers.lstm(self.hyper)

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        x = batch["features"].astype(dtype).swapaxes(0, 1)
        for layer in range(self.hyper["layers"]):
            x = _layer(parameters, layer, x)
        return (dense(parameters, "classifier", x[-1]),), statistics
