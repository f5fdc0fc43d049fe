"""The facts' optimizers by the rules of ``torch.optim``, from Optax: its ``adamw`` decays outside
the moments and adds epsilon behind the bias correction, its ``sgd`` starts the momentum with the
first gradient."""

from __future__ import annotations

from typing import Any, Dict

import optax


def from_facts(facts: Dict[str, Any]) -> optax.GradientTransformation:
    """The optimizer that the model's hyper-parameters name; gradients are clipped before it."""
    hyper = facts["hyperparameters"]
    parts = [{"sgd": _sgd, "adamw": _adamw}[hyper["optimizer"]](hyper)]
    if hyper.get("clip_global_norm") is not None:
        parts.insert(0, optax.clip_by_global_norm(hyper["clip_global_norm"]))
    return optax.chain(*parts)


def _sgd(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    # before the momentum: the weight decay is part of the gradient
    decay = optax.add_decayed_weights(hyper["weight_decay"])
    return optax.chain(decay, optax.sgd(hyper["learning_rate"], momentum=hyper["momentum"]))


def _adamw(hyper: Dict[str, Any]) -> optax.GradientTransformation:
    return optax.adamw(
        hyper["learning_rate"],
        b1=hyper["beta1"],
        b2=hyper["beta2"],
        eps=hyper["epsilon"],
        weight_decay=hyper["weight_decay"],
    )
