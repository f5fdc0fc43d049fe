"""Optimizers of the model config by the rules of ``torch.optim``, from Optax: its ``adamw`` decays
outside the moments and adds epsilon after the bias correction, its ``sgd`` starts the momentum with
the first gradient. Both are taken apart here for their last part, which is Optax's
``scale_by_learning_rate`` with the rate as an array of the state: a compiled step takes another."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from harness import layerwise
from harness.adapter import Unsupported
from harness.optimizers import NO_DECAY, NO_TRUST_RATIO, left_out


class Rate(NamedTuple):
    """The learning rate, in the state of an optimizer."""

    value: Any

    @staticmethod
    def from_float(rate: float) -> Rate:
        """Return the rate as float32."""
        return Rate(np.float32(rate))


def with_rate(moments: optax.OptState, rate: Rate) -> optax.OptState:
    """Return the state of an optimizer with another ``rate``. Raises :class:`Unsupported` where it
    has none that could be another."""

    def is_rate(node: Any) -> bool:
        return isinstance(node, Rate)

    if not any(map(is_rate, jax.tree.leaves(moments, is_leaf=is_rate))):
        raise Unsupported(
            "the learning rate of an optimizer of one's own is compiled into the step"
        )
    return jax.tree.map(lambda node: rate if is_rate(node) else node, moments, is_leaf=is_rate)


def from_model_config(model_config: Dict[str, Any]) -> optax.GradientTransformation:
    """Return the optimizer that the model's hyper-parameters name; gradients are clipped before
    it."""
    hyper = model_config["hyperparameters"]
    parts = [{"sgd": _sgd, "adamw": _adamw, "lamb": _lamb}[hyper["optimizer"]](hyper)]
    if hyper.get("clip_global_norm") is not None:
        parts.insert(0, optax.clip_by_global_norm(hyper["clip_global_norm"]))
    return optax.chain(*parts)


def _sgd(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    # before the momentum: the weight decay is part of the gradient
    decay = _decay(hyper)
    momentum = optax.trace(hyper["momentum"])
    return optax.chain(decay, momentum, _scale_by_rate(hyper["learning_rate"]))


def _adamw(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    moments = optax.scale_by_adam(hyper["beta1"], hyper["beta2"], hyper["epsilon"])
    decay = _decay(hyper)
    own = hyper if layerwise.DECAY in hyper else None
    return optax.chain(moments, decay, _scale_by_rate(hyper["learning_rate"], own))


def _lamb(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    """Return ``optax.lamb`` with some parameters left out of its ratio of norms."""
    return optax.chain(
        optax.scale_by_adam(hyper["beta1"], hyper["beta2"], hyper["epsilon"]),
        _decay(hyper),
        optax.masked(optax.scale_by_trust_ratio(), _others(hyper, NO_TRUST_RATIO)),
        _scale_by_rate(hyper["learning_rate"]),
    )


def _decay(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    mask = _others(hyper, NO_DECAY) if NO_DECAY in hyper else None
    return optax.add_decayed_weights(hyper["weight_decay"], mask)


def _others(hyper: Dict[str, Any], key: str) -> Callable[[Dict[str, Any]], Dict[str, bool]]:
    """Return a function that gives a mask of parameters: False for those that ``key`` leaves
    out."""

    def chosen(parameters: Dict[str, Any]) -> Dict[str, bool]:
        without = left_out(hyper, key, parameters)
        return {name: name not in without for name in parameters}

    return chosen


def _scale_by_rate(
    rate: float, by_layer: Optional[Dict[str, Any]] = None
) -> optax.GradientTransformation:
    """Return a transformation that scales updates by the negative rate of its state, in their
    dtype. ``by_layer``: hyper-parameters by which layers have parts of the rate."""

    def init(parameters: Any) -> Rate:
        return Rate(jnp.float32(rate))

    def update(updates: Any, state: Rate, parameters: Optional[Any] = None) -> Tuple[Any, Rate]:
        if by_layer is not None:
            parts = {name: layerwise.factor(name, by_layer) for name in updates}
            updates = {name: update * parts[name] for name, update in updates.items()}
        return jax.tree.map(lambda leaf: -state.value.astype(leaf.dtype) * leaf, updates), state

    return optax.GradientTransformation(init, update)
