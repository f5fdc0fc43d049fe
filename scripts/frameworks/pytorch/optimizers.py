"""The facts' optimizers, each parameter updated by a fused kernel."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Sequence, Tuple

import torch
from harness import layerwise
from torch import nn

#: Of a group of parameters: its part of the learning rate.
_FACTOR = "factor"


def from_facts(
    groups: Sequence[Sequence[nn.Parameter]], facts: Dict[str, Any]
) -> torch.optim.Optimizer:
    """The optimizer that the model's hyper-parameters name. Those of a group go into one kernel."""
    parameters = [{"params": list(group)} for group in groups]
    hyper = facts["hyperparameters"]
    common = {"lr": hyper["learning_rate"], "weight_decay": hyper["weight_decay"], "fused": True}
    if hyper["optimizer"] == "sgd":
        return torch.optim.SGD(parameters, momentum=hyper["momentum"], **common)
    betas = (hyper["beta1"], hyper["beta2"])
    return torch.optim.AdamW(parameters, betas=betas, eps=hyper["epsilon"], **common)


def by_layer(
    named: Iterable[Tuple[str, nn.Parameter]], facts: Dict[str, Any]
) -> torch.optim.Optimizer:
    """The same with a group for each factor of the learning rate, see :func:`set_rate`."""
    groups: Dict[float, List[nn.Parameter]] = {}
    for name, parameter in named:
        factor = layerwise.factor(name, facts["hyperparameters"])
        groups.setdefault(factor, []).append(parameter)
    optimizer = from_facts([*groups.values()], facts)
    for group, factor in zip(optimizer.param_groups, groups):
        group[_FACTOR] = factor
    set_rate(optimizer, facts["hyperparameters"]["learning_rate"])
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group.get(_FACTOR, 1.0)
