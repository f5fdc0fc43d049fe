"""Optimizers of the model config. MegEngine's own follow the rules of ``torch.optim``: weight decay
of SGD is part of the gradient, that of AdamW is not; epsilon is added after the bias correction."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from harness import layerwise
from harness.optimizers import NO_DECAY, left_out
from megengine import Parameter, optimizer


def from_model_config(
    parameters: Mapping[str, Parameter], model_config: Dict[str, Any]
) -> optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for all ``parameters``."""
    layerwise.refuse(model_config)
    hyper = model_config["hyperparameters"]
    undecayed = left_out(hyper, NO_DECAY, parameters)
    groups = [
        {"params": [p for name, p in parameters.items() if (name in undecayed) == without],
         "weight_decay": 0.0 if without else hyper["weight_decay"]}
        for without in (False, True)
    ]  # fmt: skip
    groups = [group for group in groups if group["params"]]
    rate = hyper["learning_rate"]
    if hyper["optimizer"] == "sgd":
        return optimizer.SGD(groups, rate, momentum=hyper["momentum"])
    betas = (hyper["beta1"], hyper["beta2"])
    return optimizer.AdamW(groups, rate, betas=betas, eps=hyper["epsilon"])
