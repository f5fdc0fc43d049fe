"""Optimizers that model configs name, and how each updates a parameter. Frameworks and the
reference build their optimizers from a model config; ``framework.json`` declares those that a
framework has besides :data:`COMMON`."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

#: Keys with lists of parts of parameters' names. A matching parameter has no weight decay, or its
#: update is not scaled by the trust ratio. Without a list no parameter is excluded.
NO_DECAY, NO_TRUST_RATIO = "no_weight_decay", "no_trust_ratio"
#: Factor of the learning rate from layer to layer; without it all layers have one rate.
LAYER_DECAY = "layer_decay"
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
    """Raise ValueError where hyper-parameters are missing, or belong to another optimizer."""
    name = hyper.get("optimizer")
    for key in REQUIRED.get(str(name), ()):
        if key not in hyper:
            raise ValueError(f"the optimizer {name} needs the hyper-parameter {key}")
    if LAYER_DECAY in hyper and name != "adamw":
        raise ValueError(f"layer_decay is for the optimizer adamw, not for {name}")
    if hyper.get("clip_global_norm") is not None and name == "sgd":
        raise ValueError("clip_global_norm is for the optimizers adamw and lamb, not for sgd")


def declared_name(hyper: Mapping[str, Any]) -> str:
    """Return the name by which ``framework.json`` declares the optimizer; "" without one."""
    return "layerwise_adamw" if LAYER_DECAY in hyper else str(hyper.get("optimizer") or "")


class UpdateRule(NamedTuple):
    """Rule for the update of a parameter: its weight decay, whether LAMB scales its update by the
    trust ratio, and the factor of its learning rate."""

    weight_decay: float
    trust_ratio: bool
    rate_factor: float


def update_rules(names: Iterable[str], hyper: Mapping[str, Any]) -> Dict[str, UpdateRule]:
    """Return the rule of each parameter.

    ``names``: all parameters of a model, as all frameworks name them. Raises ValueError where an
    excluded part is in none of them."""
    every = list(names)
    for key in (NO_DECAY, NO_TRUST_RATIO):
        for part in hyper.get(key, ()):
            if not any(part in name for name in every):
                raise ValueError(f"{key}: no parameter of the model has {part!r} in its name")

    def excluded(name: str, key: str) -> bool:
        return any(part in name for part in hyper.get(key, ()))

    return {
        name: UpdateRule(
            0.0 if excluded(name, NO_DECAY) else hyper["weight_decay"],
            not excluded(name, NO_TRUST_RATIO),
            _rate_factor(name, hyper),
        )
        for name in every
    }


def groups_by_decay(
    parameters: Mapping[str, Any], hyper: Mapping[str, Any]
) -> List[Dict[str, Any]]:
    """Return the parameters as groups of one weight decay each, in the form of ``torch.optim``."""
    groups: Dict[float, Dict[str, Any]] = {}
    for name, rule in update_rules(parameters, hyper).items():
        decay = rule.weight_decay
        group = groups.setdefault(decay, {"params": [], "weight_decay": decay})
        group["params"].append(parameters[name])
    return list(groups.values())


def _rate_factor(name: str, hyper: Mapping[str, Any]) -> float:
    """Return the factor of a parameter's learning rate for fine-tuning ELECTRA (Clark et
    al. 2020, arXiv:2003.10555): layers far from the head learn more slowly.

    As in the authors' code, the head has the rate of the model config, the last layer this rate
    times ``layer_decay`` squared, each earlier layer one more factor of ``layer_decay``, and the
    embeddings one more than the first layer."""
    if LAYER_DECAY not in hyper:
        return 1.0
    top = int(hyper["layers"]) + 2
    part, number = (name.split(".") + [""])[:2]
    depth = 0 if part == "embeddings" else 1 + int(number) if part == "layers" else top
    return float(hyper[LAYER_DECAY]) ** (top - depth)
