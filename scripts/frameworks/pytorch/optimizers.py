"""The facts' optimizers, each parameter updated by a fused kernel."""

from __future__ import annotations

from typing import Any, Dict, Sequence

import torch
from torch import nn


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
