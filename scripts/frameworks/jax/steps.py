"""One training step and one inference step, for any model: pure functions from a state to the next.

A state consists of shared arrays (parameters, moments of the optimizer) and each rank's own arrays
(running statistics, the key of its random numbers)."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from harness.adapter import RankContext
from jax import Array

from .models.layers import Arrays


class Shared(NamedTuple):
    parameters: Arrays
    moments: optax.OptState


class Own(NamedTuple):
    statistics: Arrays
    key: Array


def initial(
    definition: Any, rank_context: RankContext
) -> Tuple[Dict[str, np.ndarray], Dict[str, np.ndarray], np.ndarray]:
    """Return parameters and running statistics, the same in every rank, and the key of the rank's
    random numbers, so that dropout differs between ranks."""
    random = np.random.default_rng(rank_context.seed)
    key = np.asarray(jax.random.PRNGKey(rank_context.dropout_seed))
    # a user's model has its statistics only after this call
    parameters = definition.parameters(random)
    return parameters, definition.statistics(), key


Forward = Callable[[Arrays, Own, Arrays], Tuple[Tuple[Array, ...], Own]]
Differentiate = Callable[[Arrays, Own, Arrays], Tuple[Array, Own, Arrays]]


def forward(definition: Any, dtype: Any, train: bool) -> Forward:
    """Return a function from parameters, a rank's own state and its batch to logits and next
    state."""

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Tuple[Array, ...], Own]:
        key, dropout = jax.random.split(own.key) if train else (own.key, None)
        outputs, statistics = definition.forward(parameters, own.statistics, batch, dropout, dtype)
        return outputs, Own(statistics, key)

    return run


def differentiation(forward: Forward, loss: Callable[..., Array]) -> Differentiate:
    """Return a function that computes this rank's loss, next own state and gradients."""

    def scored(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own]:
        outputs, own = forward(parameters, own, batch)
        return loss(outputs, batch), own

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
        (value, own), gradients = jax.value_and_grad(scored, has_aux=True)(parameters, own, batch)
        return value, own, gradients

    return run


def accumulated(
    differentiate: Differentiate, vary: Callable[[Any], Any], in_loop: bool
) -> Differentiate:
    """Return a function that differentiates over micro-batches and returns the means of their
    losses and gradients.

    Micro-batches are stacked along the first axis of ``batch``. ``in_loop``: as ``lax.scan``, which
    keeps one iteration in memory. ``vary``: see :meth:`data_parallel.Together.vary`."""

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
        count = len(next(iter(batch.values())))

        def add(carried: Tuple[Own, Arrays], micro_batch: Arrays) -> Tuple[Any, Array]:
            own, total = carried
            value, own, gradients = differentiate(parameters, own, micro_batch)
            return (own, jax.tree.map(jnp.add, total, gradients)), value

        zeros = {name: jnp.zeros(array.shape, array.dtype) for name, array in parameters.items()}
        carried = own, vary(zeros)
        if in_loop:
            carried, values = jax.lax.scan(add, carried, batch)
        else:
            losses = []
            for number in range(count):
                carried, value = add(carried, {name: a[number] for name, a in batch.items()})
                losses.append(value)
            values = jnp.stack(losses)
        own, total = carried
        return values.mean(), own, {name: array / count for name, array in total.items()}

    return run


def averaged(differentiate: Differentiate, arrays: Any) -> Differentiate:
    """Differentiate as one rank's part of a program over all ranks, and average the gradients over
    them; the loss is still this rank's."""

    def run(parameters: Arrays, own: Own, batch: Arrays) -> Tuple[Array, Own, Arrays]:
        value, own, gradients = differentiate(arrays.vary(parameters), own, batch)
        return value, own, arrays.average(gradients)

    return run


def training(
    differentiate: Differentiate, optimizer: optax.GradientTransformation
) -> Callable[[Shared, Own, Arrays], Tuple[Shared, Own, Array]]:
    """Return the step. Its loss has the shape (1,), so that losses of all ranks can be
    concatenated."""

    def step(shared: Shared, own: Own, batch: Arrays) -> Tuple[Shared, Own, Array]:
        value, own, gradients = differentiate(shared.parameters, own, batch)
        updates, moments = optimizer.update(gradients, shared.moments, shared.parameters)
        parameters = optax.apply_updates(shared.parameters, updates)
        return Shared(parameters, moments), own, value[None]

    return step
