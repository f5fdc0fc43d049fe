"""Modules of Flax, Linen and NNX, as parameters, running statistics and a function of a user's
model. Flax is imported where the user's file has imported it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any, Callable, Dict, NamedTuple, Tuple

import jax
from jax import Array

#: Arguments by which a Linen module is told that it trains, and their value then.
_MODES = {"train": True, "training": True, "is_training": True, "deterministic": False}


class Parts(NamedTuple):
    """A model as pure parts. ``apply(parameters, statistics, inputs, key, train)`` returns outputs
    and the next statistics; ``key`` is None in inference."""

    parameters: Any
    statistics: Any
    apply: Callable[..., Tuple[Any, Any]]


def parts(model: Any, inputs: Any, seed: int, dropout: bool) -> Parts:
    """Return the parts of ``model``: a module of Flax, or parameters and a function. Raises
    TypeError for anything else."""
    if isinstance(model, tuple) and len(model) == 2 and callable(model[1]):
        function = model[1]
        return Parts(model[0], {}, lambda own, kept, some, *_: (function(own, some), kept))
    # what the file has imported: some versions of Flax break where both are
    linen, nnx = (sys.modules.get(f"flax.{name}") for name in ("linen", "nnx"))
    if linen and isinstance(model, linen.Module):
        return _of_linen(linen, model, inputs, seed, dropout)
    if nnx and isinstance(model, nnx.Module):
        return _of_nnx(nnx, model, dropout)
    raise TypeError(
        f"make returned {type(model).__name__} as the model, not (parameters, function) or a "
        "module of Flax"
    )


def _of_linen(linen: Any, module: Any, inputs: Any, seed: int, dropout: bool) -> Parts:
    taken = inspect.signature(type(module).__call__).parameters

    def call(function: Any, variables: Any, some: Any, train: bool, **how: Any) -> Any:
        given, named = _arguments(some)
        modes = {name: on == train for name, on in _MODES.items() if name in taken}

        def without_dropout(following: Any, values: Any, names: Any, context: Any) -> Any:
            is_dropout = isinstance(context.module, linen.Dropout)
            drops = is_dropout and context.method_name == "__call__"
            return values[0] if drops and not dropout else following(*values, **names)

        with linen.intercept_methods(without_dropout):
            return function(variables, *given, **named, **modes, **how)

    key = jax.random.PRNGKey(seed)
    drawn = call(module.init, {"params": key, "dropout": key}, inputs, train=False)
    statistics = {name: some for name, some in drawn.items() if name != "params"}

    def apply(own: Any, kept: Any, some: Any, key: Any, train: bool) -> Tuple[Any, Any]:
        variables = {"params": own, **kept}
        if not train:
            return call(module.apply, variables, some, train=False), kept
        rngs = {"params": key, "dropout": key}  # streams of other names follow the first
        outputs, changed = call(
            module.apply, variables, some, train=True, rngs=rngs, mutable=[*kept]
        )
        return outputs, {**kept, **changed}

    return Parts(drawn.get("params", {}), statistics, apply)


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

    def apply(own: Any, kept: Any, some: Any, key: Any, train: bool) -> Tuple[Any, Any]:
        given, named = _arguments(some)
        random = jax.tree.map(lambda leaf: _drawn_anew(leaf, key), streams) if train else streams
        whole = nnx.merge(graphs[train], own, random, kept)
        outputs = whole(*given, **named)
        return outputs, nnx.split(whole, *kinds)[3] if train else kept

    return Parts(parameters, statistics, apply)


def _drawn_anew(leaf: Array, key: Array) -> Array:
    """Return the state of a stream of random numbers; its count is drawn with the step's key."""
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return jax.random.bits(key, leaf.shape, leaf.dtype)


def _arguments(inputs: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Return inputs as arguments: those of a tuple one by one, those of a dictionary by name."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}
