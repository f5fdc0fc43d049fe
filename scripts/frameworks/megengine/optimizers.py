"""Optimizers of the model config. MegEngine's optimizers follow the rules of ``torch.optim``: SGD's
weight decay is part of the gradient, AdamW's is not; epsilon is added after the bias correction."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from harness.optimizers import groups_by_decay
from megengine import Parameter, optimizer


def from_model_config(
    parameters: Mapping[str, Parameter], model_config: Dict[str, Any]
) -> optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for all ``parameters``."""
    hyper = model_config["hyperparameters"]
    groups, rate = groups_by_decay(parameters, hyper), hyper["learning_rate"]
    if hyper["optimizer"] == "sgd":
        return optimizer.SGD(groups, rate, momentum=hyper["momentum"])
    betas = (hyper["beta1"], hyper["beta2"])
    return optimizer.AdamW(groups, rate, betas=betas, eps=hyper["epsilon"])
