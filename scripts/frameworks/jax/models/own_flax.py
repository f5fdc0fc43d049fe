"""Modules of Flax NNX, as parameters, running statistics and a function of a user's model. Flax is
imported where the user's file has imported it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Tuple

import jax
from jax import Array


class Parts(NamedTuple):
    """A model as pure parts. ``apply(parameters, statistics, inputs, key)`` returns outputs and the
    next statistics; ``key`` is None in inference."""

    parameters: Any
    statistics: Any
    apply: Callable[..., Tuple[Any, Any]]


def parts(model: Any, dropout: bool) -> Parts:
    """Return the parts of ``model``: a module of Flax NNX, or parameters and a function. Raises
    TypeError for anything else."""
    if isinstance(model, tuple) and len(model) == 2 and callable(model[1]):
        function = model[1]
        return Parts(model[0], {}, lambda own, kept, some, *_: (function(own, some), kept))
    nnx = sys.modules.get("flax.nnx")
    if nnx and isinstance(model, nnx.Module):
        return _of_nnx(nnx, model, dropout)
    raise TypeError(
        f"make returned {type(model).__name__} as the model, not (parameters, function) or a "
        "module of Flax NNX"
    )


def _of_nnx(nnx: Any, model: Any, dropout: bool) -> Parts:
    if not dropout:
        for _, node in nnx.iter_graph(model):
            if isinstance(node, nnx.Dropout):
                node.rate = 0.0
            elif isinstance(node, nnx.MultiHeadAttention):
                node.dropout_rate = 0.0
    kinds = (nnx.Param, nnx.RngState, ...)
    model.eval()
    graphs = {False: nnx.split(model)[0]}
    model.train()
    graphs[True], parameters, streams, statistics = nnx.split(model, *kinds)

    def apply(own: Any, kept: Any, some: Any, key: Any) -> Tuple[Any, Any]:
        train = key is not None
        random = jax.tree.map(lambda leaf: _drawn_anew(leaf, key), streams) if train else streams
        whole = nnx.merge(graphs[train], own, random, kept)
        if isinstance(some, Mapping):
            outputs = whole(**some)
        else:
            outputs = whole(*some) if isinstance(some, (tuple, list)) else whole(some)
        return outputs, nnx.split(whole, *kinds)[3] if train else kept

    return Parts(parameters, statistics, apply)


def _drawn_anew(leaf: Array, key: Array) -> Array:
    """Return the state of a stream of random numbers; its count is drawn with the step's key."""
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return jax.random.bits(key, leaf.shape, leaf.dtype)
