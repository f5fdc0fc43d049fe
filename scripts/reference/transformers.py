"""Parts that transformers share: dropout, attention, a chain of layers.

Gradients recompute activations to save memory (Chen et al. 2016, arXiv:1604.06174): the
activations of all layers would take many times the memory of the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import autograd.numpy as np
from autograd.core import make_vjp
from autograd.extend import defvjp_argnums, primitive

from reference.operations import Array, matmul, softmax
from reference.weights import InitialMoments

Dropout = Callable[[tuple[int, ...]], Any]
#: What drops from an array.
Drop = Callable[[Array], Array]
#: Of an array, the layer's weights by their whole names, and its name, to the next array.
Layer = Callable[[Array, dict[str, Array], str], Array]


def initial_moments(
    names: Iterable[str], model_config: dict[str, Any]
) -> dict[str, InitialMoments]:
    """Return the moments of the values that each parameter starts training with: biases are 0,
    normalisations 1, all others normal with the config's ``initializer_range``."""
    deviation, moments = model_config["hyperparameters"]["initializer_range"], {}
    for name in names:
        layer, _, ending = name.rpartition(".")
        if ending.endswith("bias"):
            moments[name] = InitialMoments(0.0, 0.0)
        elif layer.endswith("norm"):
            moments[name] = InitialMoments(1.0, 0.0)
        else:
            moments[name] = InitialMoments(0.0, deviation)
    return moments


def all_kept(x: Array) -> Array:
    """Return ``x`` unchanged: dropout that drops nothing."""
    return x


def dropping(training: bool, dropout: Dropout | None) -> Drop:
    """Return the dropout. ``dropout`` gives factors of a shape, 0 or 1 / (1 - rate)."""
    if dropout is None or not training:
        return all_kept
    return lambda x: x * dropout(x.shape)


def recomputed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return ``function`` so that only its arguments are kept for the backward pass, in which it is
    computed again. Its result must follow from its arguments; those to differentiate by are
    arrays."""
    once = primitive(function)

    def make(argnums: tuple[int, ...], result: Any, arguments: tuple[Any, ...], _: Any) -> Any:
        def again(differentiated: Any) -> Array:
            replaced = list(arguments)
            for place, argnum in enumerate(argnums):
                replaced[argnum] = differentiated[place]
            return function(*replaced)

        def pull(gradient: Array) -> Any:
            return make_vjp(again, tuple(arguments[argnum] for argnum in argnums))[0](gradient)

        return pull

    defvjp_argnums(once, make)
    computed: Callable[..., Array] = once
    return computed


def attention(query: Array, key: Array, value: Array, hidden: Any, drop: Drop) -> Array:
    """(batch, heads, sequence, size) of each; several heads of queries that follow one another may
    share one of keys and values. ``hidden`` (batch or 1, queries or 1, keys): 1 where a query does
    not see a key. One head after the other: the weights of all are many times what comes of them.
    """
    head = _head_again if drop is all_kept else _head  # what drops is not to be drawn once more
    shared = query.shape[1] // key.shape[1]
    return np.stack(
        [
            head(
                query[:, number], key[:, number // shared], value[:, number // shared], hidden, drop
            )
            for number in range(query.shape[1])
        ],
        axis=1,
    )


def _head(query: Array, key: Array, value: Array, hidden: Any, drop: Drop) -> Array:
    """Return the attention of one head, (batch, sequence, size)."""
    scores = matmul(query, np.swapaxes(key, 1, 2)) / np.sqrt(query.shape[-1])
    return matmul(drop(softmax(scores - 1e9 * hidden)), value)


def chained(
    layer: Layer, x: Array, weights: dict[str, Array], names: Iterable[str], drop: Drop
) -> Array:
    """Return ``x`` after the layers of these ``names``, one after the other."""
    for name in names:
        own = {key: array for key, array in weights.items() if key.startswith(f"{name}.")}
        if drop is all_kept:
            x = _layer_again(layer, name, tuple(own), x, *own.values())
        else:
            x = layer(x, own, name)
    return x


def _layer(layer: Layer, name: str, keys: tuple[str, ...], x: Array, *arrays: Array) -> Array:
    return layer(x, dict(zip(keys, arrays)), name)


_head_again, _layer_again = recomputed(_head), recomputed(_layer)
