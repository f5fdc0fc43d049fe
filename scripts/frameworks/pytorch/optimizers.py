"""Optimizers of the model config, each parameter updated by a fused kernel where PyTorch has
one."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from harness import layerwise
from harness.adapter import Unsupported
from harness.optimizers import NO_DECAY, NO_TRUST_RATIO, left_out
from torch import nn

from .lamb import Lamb

#: Key of a parameter group with its factor of the learning rate.
_FACTOR = "factor"

Groups = Sequence[Sequence[nn.Parameter]]


def of_model(
    model: nn.Module, sharding: Any, model_config: Dict[str, Any]
) -> torch.optim.Optimizer:
    """Return the optimizer for all parameters of ``model``; ``sharding``: how ranks share them,
    or None."""
    if layerwise.decays(model_config):
        if sharding:
            raise Unsupported("parts of layers have one learning rate for all layers here")
        return by_layer(model, model_config)
    groups = sharding.groups() if sharding else [list(model.parameters())]
    return from_model_config(model, groups, model_config)


def clipping(
    model: nn.Module, sharding: Any, model_config: Dict[str, Any]
) -> Optional[Callable[[], Any]]:
    """Return a function that clips gradients by their global norm, or None where the model
    config has no limit."""
    largest = model_config["hyperparameters"].get("clip_global_norm")
    if largest is None:
        return None
    if sharding:
        return functools.partial(sharding.clip, largest)
    return functools.partial(nn.utils.clip_grad_norm_, list(model.parameters()), largest)


def from_model_config(
    model: nn.Module, groups: Groups, model_config: Dict[str, Any]
) -> torch.optim.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for ``groups`` of the parameters
    of ``model``. Those of a group go into one kernel."""
    hyper = model_config["hyperparameters"]
    parts = _cut(model, groups, hyper)
    rate = hyper["learning_rate"]
    if hyper["optimizer"] == "sgd":
        return torch.optim.SGD(parts, lr=rate, momentum=hyper["momentum"], fused=True)
    moments = {"betas": (hyper["beta1"], hyper["beta2"]), "eps": hyper["epsilon"]}
    if hyper["optimizer"] == "lamb":
        return Lamb(parts, lr=rate, **moments)
    return torch.optim.AdamW(parts, lr=rate, fused=True, **moments)


def by_layer(model: nn.Module, model_config: Dict[str, Any]) -> torch.optim.Optimizer:
    """Return the optimizer with a group for each factor of the learning rate, see
    :func:`set_rate`."""
    groups: Dict[float, List[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        factor = layerwise.factor(name, model_config["hyperparameters"])
        groups.setdefault(factor, []).append(parameter)
    factors = {parameter: factor for factor, group in groups.items() for parameter in group}
    optimizer = from_model_config(model, [*groups.values()], model_config)
    for group in optimizer.param_groups:
        group[_FACTOR] = factors[group["params"][0]]
    set_rate(optimizer, model_config["hyperparameters"]["learning_rate"])
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(_FACTOR, 1.0)


def _cut(model: nn.Module, groups: Groups, hyper: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Split each group by parameters without weight decay and, for LAMB, without the ratio of
    norms."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    undecayed = left_out(hyper, NO_DECAY, names.values())
    unscaled = left_out(hyper, NO_TRUST_RATIO, names.values())
    alike: Dict[Tuple[int, bool, bool], List[nn.Parameter]] = defaultdict(list)
    for number, group in enumerate(groups):
        for parameter in group:
            name = names[parameter]
            alike[number, name in undecayed, name in unscaled].append(parameter)
    return [
        {
            "params": parameters,
            "weight_decay": 0.0 if without_decay else hyper["weight_decay"],
            **({"trust_ratio": not without_ratio} if hyper["optimizer"] == "lamb" else {}),
        }
        for (_, without_decay, without_ratio), parameters in alike.items()
    ]
