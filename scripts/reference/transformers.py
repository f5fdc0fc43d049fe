"""Parts that transformers share: dropout, attention, a chain of layers.

Gradients recompute activations to save memory (Chen et al. 2016, arXiv:1604.06174): the
activations of all layers would take many times the memory of the weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import autograd.numpy as np
import numpy
from autograd.core import make_vjp
from autograd.extend import defvjp_argnums, primitive
from networks import Weight
from networks.layers import ONE

from reference.operations import Array, matmul, softmax
from reference.weights import Arrays, Drawn, Hyper

#: Function from a shape and a rate to dropout factors, 0 or 1 / (1 - rate).
Dropout = Callable[[tuple[int, ...], float], Any]
#: Function that applies dropout to an array.
Drop = Callable[[Array], Array]
#: Function of an array, the layer's weights by their full names, and its name; returns an array.
Layer = Callable[[Array, Arrays, str], Array]


def drawn(weights: Mapping[str, Weight], factors: Mapping[str, float]) -> dict[str, Drawn]:
    """Return how the parameters of a transformer are drawn. ``factors``: factors of the deviation
    of weights, by the end of their layer's name. Embeddings are small, so that the epsilon of the
    normalisation after them matters."""
    parameters = {}
    for name, weight in weights.items():
        layer, shape = name.rpartition(".")[0], weight.shape
        if len(shape) == 1:
            parameters[name] = Drawn(shape, 0.1, 1.0 if weight.initial == ONE else 0.0)
        elif layer.startswith("embeddings."):
            parameters[name] = Drawn(shape, 0.05)
        else:
            factor = next((factors[end] for end in factors if layer.endswith(end)), 1.0)
            parameters[name] = Drawn(shape, factor * shape[0] ** -0.5)
    return parameters


def all_kept(x: Array) -> Array:
    """Return ``x`` unchanged: dropout that drops nothing."""
    return x


def dropping(training: bool, dropout: Dropout | None, hyper: Hyper) -> Drop:
    """Return a function that applies dropout with the model's rate."""
    if dropout is None or not training:
        return all_kept
    return lambda x: x * dropout(x.shape, hyper["dropout"])


def recomputed(function: Callable[..., Array]) -> Callable[..., Array]:
    """Return ``function`` so that only its arguments are kept for the backward pass, which computes
    it again. Its result must depend on them alone. Differentiated arguments must be arrays."""
    once = primitive(function)

    def make(argnums: tuple[int, ...], result: Any, arguments: tuple[Any, ...], _: Any) -> Any:
        def again(differentiated: Any) -> Array:
            replaced = list(arguments)
            for index, argnum in enumerate(argnums):
                replaced[argnum] = differentiated[index]
            return function(*replaced)

        def pull(gradient: Array) -> Any:
            return make_vjp(again, tuple(arguments[argnum] for argnum in argnums))[0](gradient)

        return pull

    defvjp_argnums(once, make)
    computed: Callable[..., Array] = once
    return computed


def attention(query: Array, key: Array, value: Array, hidden: Any, drop: Drop) -> Array:
    """Return the attention of ``query`` to ``key`` and ``value``, all (batch, heads, sequence,
    size). Consecutive heads of queries may share a head of keys and values. ``hidden`` (batch or 1,
    queries or 1, keys): 1 where a query does not see a key.

    Heads are computed one after the other, because the weights of all take far more memory than the
    result."""
    head = head_again if drop is all_kept else attention_head  # dropout must not draw again
    shared = query.shape[1] // key.shape[1]
    heads = [
        head(query[:, n], key[:, n // shared], value[:, n // shared], hidden, drop)
        for n in range(query.shape[1])
    ]
    return np.stack(heads, axis=1)


def attention_head(query: Array, key: Array, value: Array, hidden: Any, drop: Drop) -> Array:
    """Return the attention of one head, (batch, sequence, size)."""
    scores = matmul(query, np.swapaxes(key, 1, 2)) / np.sqrt(query.shape[-1])
    return matmul(drop(softmax(scores - 1e9 * hidden)), value)


def chained(layer: Layer, x: Array, weights: Arrays, names: Iterable[str], drop: Drop) -> Array:
    """Return ``x`` after the layers ``names``, in order."""
    for name in names:
        own = {key: array for key, array in weights.items() if key.startswith(f"{name}.")}
        if drop is all_kept:
            x = layer_again(layer, name, tuple(own), x, *own.values())
        else:
            x = layer(x, own, name)
    return x


def one_layer(layer: Layer, name: str, keys: tuple[str, ...], x: Array, *arrays: Array) -> Array:
    """Return the output of a layer; ``arrays``: its parameters, named by ``keys``."""
    return layer(x, dict(zip(keys, arrays)), name)


head_again, layer_again = recomputed(attention_head), recomputed(one_layer)


#: In weights that show dropout of attention's probabilities, factor of the output matrix; in
#: weights that show dropout of residuals, size of the branches relative to the embeddings.
LARGE, ADDED = 40.0, 0.5


def showing_dropout(weights: Arrays) -> dict[str, Arrays]:
    """Return sets of changed weights by name: ``probabilities`` shows dropout of attention's
    probabilities, ``residuals`` that of the embeddings and of what the residuals add. A model
    without attention has one set without changes.

    Zeros hide all other dropout. Attention is uniform. Values and residuals are the same for all
    tokens and in all layers, so that effects of shared masks add up. In ``probabilities``, the
    output's bias cancels what attention adds without dropout, which hides the dropout of the
    sum."""
    ending = ".attention.output.weight"
    layers = [name[: -len(ending)] for name in weights if name.endswith(ending)]
    if not layers:
        return {"all": {}}
    embedded: Array = weights.get("embeddings.norm.weight", weights["embeddings.token.weight"])
    added = ADDED * numpy.sqrt(numpy.mean(embedded**2))
    nothing = {
        name: numpy.zeros_like(array)
        for name, array in weights.items()
        if re.search(r"layers\.\d+\.(attention\.output|output|feed_forward\.down)\.", name)
    }
    biases = {name: array for name, array in nothing.items() if name.endswith("bias")}
    residuals = {name: added * _signs(len(array)) for name, array in biases.items()}
    probabilities: Arrays = {}
    matrices: dict[int, Array] = {}
    for layer in layers:
        hidden = len(weights[layer + ending])
        matrix = matrices.setdefault(hidden, LARGE * weights[layer + ending])
        probabilities[layer + ending] = matrix
        probabilities[f"{layer}.attention.output.bias"] = -_signs(hidden) @ matrix
        for name, array in weights.items():
            if re.match(re.escape(layer) + r"\.attention\.(query|value)", name):
                # in a shared matrix, queries are the first columns and values the last
                part = probabilities[name] = array.copy()
                part[..., :hidden] = 0.0
                part[..., -hidden:] = 0.0
                if "value" in name and name.endswith("bias"):
                    part[-hidden:] = _signs(hidden)
    return {"probabilities": {**nothing, **probabilities}, "residuals": {**nothing, **residuals}}


def _signs(count: int) -> Array:
    """Return ``count`` numbers that are 1 or -1, the same in each call."""
    return numpy.where(numpy.random.RandomState(0).random_sample(count) < 0.5, -1.0, 1.0)
