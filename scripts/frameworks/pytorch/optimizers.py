"""The facts' optimizers, each parameter updated by a fused kernel."""

from __future__ import annotations

from typing import Any, Dict

import torch
from torch import nn


def from_facts(model: nn.Module, facts: Dict[str, Any]) -> torch.optim.Optimizer:
    """The optimizer that the model's hyper-parameters name."""
    hyper = facts["hyperparameters"]
    common = {"lr": hyper["learning_rate"], "weight_decay": hyper["weight_decay"], "fused": True}
    if hyper["optimizer"] == "sgd":
        return torch.optim.SGD(model.parameters(), momentum=hyper["momentum"], **common)
    betas = (hyper["beta1"], hyper["beta2"])
    return torch.optim.AdamW(model.parameters(), betas=betas, eps=hyper["epsilon"], **common)
