"""A user's own model as a definition: a file makes parameters and a function, or a module of Flax
(Linen or NNX)."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from typing import Any, Callable, Dict, List, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from harness.adapter import FLOAT64, Case, OwnDefinition, RankContext, Unsupported, is_mixed
from jax import Array

from .. import steps
from .layers import Arrays, Key

#: Parameters, running statistics, and a function of both, inputs and a key (None in inference). It
#: returns outputs and the next statistics.
Parts = Tuple[Any, Any, Callable[..., Tuple[Any, Any]]]
#: Arguments by which a Linen module is switched to training, with their values in training.
_MODES = {"train": True, "training": True, "is_training": True, "deterministic": False}


class Definition(OwnDefinition):
    """Definition whose parameters and batch are dictionaries by the paths of their arrays."""

    OPTIMIZERS, LIBRARY = optax.GradientTransformation, "Optax"

    def __init__(self, case: Case, model_config: Dict[str, Any], rank_context: RankContext) -> None:
        if is_mixed(case.precision):
            raise Unsupported("JAX has no mixed precision of its own: the model itself must set it")
        super().__init__(case, model_config, rank_context)

    def _first(self, inputs: Any) -> Any:
        return jax.tree.leaves(inputs)[0]

    def _drawn(self, seed: int) -> Tuple[Any, Any, Any, Any]:
        with jax.enable_x64(False):  # with float64 enabled, it would draw other numbers
            return self._made(jax.random.PRNGKey(seed))

    def batch(self, drawn: Dict[str, Any]) -> Dict[str, np.ndarray]:
        """Return this rank's batch, drawn with the seed in ``drawn``."""
        _, inputs, targets, _ = self._drawn(int(drawn["seed"]))
        self._arrays, self._batch_tree = self._flat((inputs, targets))
        return dict(self._arrays)

    def parameters(self, random: np.random.Generator) -> Dict[str, np.ndarray]:
        seed, dropout = self.rank_context.seed, self._own.get("dropout", True)
        model, inputs, _, self._loss = self._drawn(seed)
        with jax.enable_x64(False):  # with float64 enabled, it would draw other numbers
            parameters, statistics, self._apply = _parts(model, inputs, seed, dropout)
        flat, self._parameter_tree = self._flat(parameters)
        self._statistics, self._statistics_tree = self._flat(statistics)
        self._names = list(flat)
        return flat

    def statistics(self) -> Dict[str, np.ndarray]:
        """Return the running statistics of a module of Flax; a function has none."""
        return self._statistics

    def _flat(self, tree: Any) -> Tuple[Dict[str, np.ndarray], Any]:
        leaves, structure = jax.tree_util.tree_flatten_with_path(tree)
        return {
            jax.tree_util.keystr(path): self._to_numpy(leaf) for path, leaf in leaves
        }, structure

    def _to_numpy(self, array: Any) -> np.ndarray:
        kept = np.asarray(array)
        exact = self.case.precision == FLOAT64 and jnp.issubdtype(kept.dtype, jnp.floating)
        return kept.astype(np.float64) if exact else kept

    def _batch_of(self, batch: Arrays) -> Any:
        # JAX sorts a dictionary by its names
        return jax.tree.unflatten(self._batch_tree, [batch[name] for name in self._arrays])

    def forward(
        self, parameters: Arrays, statistics: Arrays, batch: Arrays, key: Key, dtype: Any
    ) -> Tuple[Tuple[Array, ...], Arrays]:
        """Return outputs for inputs in ``dtype``, and the next running statistics.

        A user's function gets no ``key``."""
        inputs, _ = self._batch_of(batch)
        outputs, changed = self._apply(
            jax.tree.unflatten(self._parameter_tree, [parameters[name] for name in self._names]),
            jax.tree.unflatten(
                self._statistics_tree, [statistics[name] for name in self._statistics]
            ),
            jax.tree.map(lambda leaf: _as(leaf, dtype), inputs),
            key,
        )
        leaves, self._outputs_tree = jax.tree.flatten(outputs)
        return tuple(leaves), dict(zip(self._statistics, jax.tree.leaves(changed)))

    def loss(self, outputs: Tuple[Array, ...], batch: Arrays) -> Array:
        """Return the user's loss, from outputs in float32 at least, like those of our models."""
        _, targets = self._batch_of(batch)
        wide = [_as(output, jnp.promote_types(output.dtype, jnp.float32)) for output in outputs]
        return self._loss(jax.tree.unflatten(self._outputs_tree, wide), targets)

    def optimizer(self) -> Any:
        """Return the optimizer of the user's file, or the default one."""
        return self._own_optimizer() or steps.optimizer_of(self.model_config)

    def arrays(self) -> List[np.ndarray]:
        """Return this rank's inputs and targets."""
        return list(self._arrays.values())


def _as(array: Array, dtype: Any) -> Array:
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array


def _parts(model: Any, inputs: Any, seed: int, dropout: bool) -> Parts:
    """Return parameters, running statistics and a function of ``model``, which is a module of Flax,
    or parameters and a function. Raises TypeError for anything else."""
    if isinstance(model, tuple) and len(model) == 2 and callable(model[1]):
        function = model[1]
        return model[0], {}, lambda own, kept, some, key: (function(own, some), kept)
    # Look only among imported modules: some versions of Flax break if both are imported.
    linen, nnx = (sys.modules.get(f"flax.{name}") for name in ("linen", "nnx"))
    if linen and isinstance(model, linen.Module):
        return _linen_parts(linen, model, inputs, seed, dropout)
    if nnx and isinstance(model, nnx.Module):
        return _nnx_parts(nnx, model, dropout)
    raise TypeError(
        f"make returned {type(model).__name__} as the model, not (parameters, function) or a "
        "module of Flax"
    )


def _arguments(inputs: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Return inputs as arguments: elements of a tuple one by one, values of a dictionary by
    name."""
    if isinstance(inputs, Mapping):
        return (), dict(inputs)
    return (tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)), {}


def _linen_parts(linen: Any, module: Any, inputs: Any, seed: int, dropout: bool) -> Parts:
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

    def apply(own: Any, kept: Any, some: Any, key: Any) -> Tuple[Any, Any]:
        variables = {"params": own, **kept}
        if key is None:
            return call(module.apply, variables, some, train=False), kept
        # random streams with other names derive from "params"
        rngs = {"params": key, "dropout": key}
        outputs, changed = call(
            module.apply, variables, some, train=True, rngs=rngs, mutable=[*kept]
        )
        return outputs, {**kept, **changed}

    return drawn.get("params", {}), statistics, apply


def _nnx_parts(nnx: Any, model: Any, dropout: bool) -> Parts:
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
        given, named = _arguments(some)
        whole = nnx.merge(graphs[train], own, random, kept)
        outputs = whole(*given, **named)
        return outputs, nnx.split(whole, *kinds)[3] if train else kept

    return parameters, statistics, apply


def _drawn_anew(leaf: Array, key: Array) -> Array:
    """Return the state of a random stream: its key unchanged, its counter drawn with ``key``."""
    if jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return leaf
    return jax.random.bits(key, leaf.shape, leaf.dtype)
