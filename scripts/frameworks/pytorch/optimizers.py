"""Optimizers of the model config, each parameter updated by a fused kernel where PyTorch has
one."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from harness.adapter import Unsupported
from harness.optimizers import UpdateRule, update_rules
from torch import nn

from .lamb import Lamb

#: Key of a parameter group with its factor of the learning rate.
_FACTOR = "rate_factor"


def from_model_config(model: nn.Module, model_config: Dict[str, Any]) -> torch.optim.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for all parameters of ``model``
    that this rank has. Parameters with one rule, on one device mesh, go into one kernel."""
    hyper = model_config["hyperparameters"]
    named = dict(model.named_parameters())
    rules = update_rules(named, hyper)
    own = {name: parameter for name, parameter in named.items() if not parameter.is_meta}
    alike: Dict[Tuple[UpdateRule, Any], List[nn.Parameter]] = defaultdict(list)
    for name, parameter in own.items():
        alike[rules[name], getattr(parameter, "device_mesh", None)].append(parameter)
    rate = hyper["learning_rate"]
    groups = [
        {"params": parameters, "lr": rate * rule.rate_factor, _FACTOR: rule.rate_factor,
         "weight_decay": rule.weight_decay, "trust_ratio": rule.trust_ratio}
        for (rule, _), parameters in alike.items()
    ]  # fmt: skip
    if hyper["optimizer"] == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=hyper["momentum"], fused=True)
    moments = {"betas": (hyper["beta1"], hyper["beta2"]), "eps": hyper["epsilon"]}
    if hyper["optimizer"] == "lamb":
        if len(own) < len(named) or any(mesh is not None for _, mesh in alike):
            raise Unsupported("LAMB's ratio of norms wants whole parameters, not parts")
        return Lamb(groups, lr=rate, **moments)
    return torch.optim.AdamW(groups, lr=rate, fused=True, **moments)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(_FACTOR, 1.0)


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
