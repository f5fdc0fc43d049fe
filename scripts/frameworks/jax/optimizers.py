"""Optimizers of the model config by the rules of ``torch.optim``, from Optax: its ``adamw`` decays
outside the moments and adds epsilon after the bias correction, its ``sgd`` starts the momentum with
the first gradient. Their last part is replaced here: Optax's ``scale_by_learning_rate``, with the
rate as an array of the state, so that a compiled step can take another rate."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from harness.adapter import Unsupported
from harness.optimizers import LAYER_DECAY, NO_DECAY, UpdateRule, update_rules


class Rate(NamedTuple):
    """The learning rate, in the state of an optimizer."""

    value: Any

    @staticmethod
    def from_float(rate: float) -> Rate:
        """Return the rate as float32."""
        return Rate(np.float32(rate))


def with_rate(moments: optax.OptState, rate: Rate) -> optax.OptState:
    """Return the state of an optimizer with another ``rate``. Raises :class:`Unsupported` where the
    rate is not part of the state."""

    def is_rate(node: Any) -> bool:
        return isinstance(node, Rate)

    if not any(map(is_rate, jax.tree.leaves(moments, is_leaf=is_rate))):
        raise Unsupported("the learning rate of a user's own optimizer is compiled into the step")
    return jax.tree.map(lambda node: rate if is_rate(node) else node, moments, is_leaf=is_rate)


def from_model_config(model_config: Dict[str, Any]) -> optax.GradientTransformation:
    """Return the optimizer that the model's hyper-parameters name; gradients are clipped before
    it."""
    hyper = model_config["hyperparameters"]
    name = hyper["optimizer"]
    decay = optax.add_decayed_weights(hyper["weight_decay"])
    if NO_DECAY in hyper:
        decay = _masked(decay, hyper, lambda rule: rule.weight_decay != 0.0)
    if name == "sgd":  # weight decay before the momentum, as part of the gradient
        parts = [decay, optax.trace(hyper["momentum"])]
    else:
        parts = [optax.scale_by_adam(hyper["beta1"], hyper["beta2"], hyper["epsilon"]), decay]
    if name == "lamb":
        ratio = optax.scale_by_trust_ratio()
        parts.append(_masked(ratio, hyper, lambda rule: rule.trust_ratio))
    if hyper.get("clip_global_norm") is not None:
        parts.insert(0, optax.clip_by_global_norm(hyper["clip_global_norm"]))
    return optax.chain(*parts, _scale_by_rate(hyper))


def _masked(
    transformation: optax.GradientTransformation,
    hyper: Dict[str, Any],
    is_in: Callable[[UpdateRule], bool],
) -> optax.GradientTransformation:
    """Return ``transformation`` of the parameters whose rule ``is_in`` accepts."""

    def mask(parameters: Dict[str, Any]) -> Dict[str, bool]:
        return {name: is_in(rule) for name, rule in update_rules(parameters, hyper).items()}

    return optax.masked(transformation, mask)


def _scale_by_rate(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    """Return a transformation that scales updates, in their dtype, by the negative rate in its
    state, and by the factors of layers that have their own rates."""

    def init(parameters: Any) -> Rate:
        return Rate(jnp.float32(hyper["learning_rate"]))

    def update(updates: Any, state: Rate, parameters: Optional[Any] = None) -> Tuple[Any, Rate]:
        if LAYER_DECAY in hyper:
            rules = update_rules(updates, hyper)
            updates = {name: change * rules[name].rate_factor for name, change in updates.items()}
        return jax.tree.map(lambda leaf: -state.value.astype(leaf.dtype) * leaf, updates), state

    return optax.GradientTransformation(init, update)
