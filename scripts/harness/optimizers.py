"""Optimizers that model configs name. Frameworks and the reference build theirs from a model
config; ``framework.json`` declares those that a framework has besides :data:`COMMON`."""

from __future__ import annotations

from typing import Any, FrozenSet, Iterable, Mapping

#: Keys with lists of parts of parameters' names. A matching parameter has no weight decay, or its
#: update is not scaled by the trust ratio. Without a list no parameter is excluded.
NO_DECAY, NO_TRUST_RATIO = "no_weight_decay", "no_trust_ratio"
#: Optimizers of every framework.
COMMON = ("sgd", "adamw")
#: Required hyper-parameters of each optimizer.
REQUIRED: Mapping[str, Iterable[str]] = {
    "sgd": ("learning_rate", "momentum", "weight_decay"),
    "adamw": ("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
    "lamb": (
        *("learning_rate", "beta1", "beta2", "epsilon", "weight_decay"),
        *(NO_DECAY, NO_TRUST_RATIO),
    ),
}


def check(hyper: Mapping[str, Any]) -> None:
    """Raise ValueError where hyper-parameters of the optimizer are missing or of another one, or
    lists are invalid."""
    name = hyper.get("optimizer")
    for key in REQUIRED.get(str(name), ()):
        if key not in hyper:
            raise ValueError(f"the optimizer {name} needs the hyper-parameter {key}")
    if "layer_decay" in hyper and name != "adamw":
        raise ValueError(f"layer_decay is of the optimizer adamw, not of {name}")
    if hyper.get("clip_global_norm") is not None and name == "sgd":
        raise ValueError("clip_global_norm is of the optimizers adamw and lamb, not of sgd")
    for key in (NO_DECAY, NO_TRUST_RATIO):
        parts = hyper.get(key, [])
        if not isinstance(parts, list) or not all(isinstance(p, str) and p for p in parts):
            raise ValueError(
                f"{key}: found {parts!r}; allowed: a list of parts of parameters' names"
            )


def left_out(hyper: Mapping[str, Any], key: str, names: Iterable[str]) -> FrozenSet[str]:
    """Return the parameters among ``names`` that :data:`NO_DECAY` or :data:`NO_TRUST_RATIO`
    excludes.

    ``names``: all parameters of a model. Raises ValueError where an entry matches none of them."""
    every = list(names)
    for part in hyper.get(key, ()):
        if not any(part in name for name in every):
            raise ValueError(f"{key}: no parameter of the model has {part!r} in its name")
    return frozenset(name for name in every if any(part in name for part in hyper.get(key, ())))
