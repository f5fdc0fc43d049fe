"""The facts' optimizers. OneFlow's own follow the rules of ``torch.optim``: weight decay of SGD is
part of the gradient, that of AdamW is not; epsilon is added behind the bias correction."""

from __future__ import annotations

from typing import Any, Dict

from harness import layerwise
from oneflow import nn, optim


def from_facts(model: nn.Module, facts: Dict[str, Any], fused: bool) -> optim.Optimizer:
    """The optimizer that the model's hyper-parameters name, for all parameters of ``model``.

    ``fused``: one kernel for many parameters, which OneFlow recommends and has for GPUs alone."""
    layerwise.refuse(facts)
    hyper = facts["hyperparameters"]
    group: Dict[str, Any] = {"params": list(model.parameters())}
    if hyper.get("clip_global_norm") is not None:
        group.update(clip_grad_max_norm=hyper["clip_global_norm"], clip_grad_norm_type=2.0)
    if hyper["optimizer"] == "sgd":
        return optim.SGD(
            [group],
            lr=hyper["learning_rate"],
            momentum=hyper["momentum"],
            weight_decay=hyper["weight_decay"],
            fused=fused,
        )
    return optim.AdamW(
        [group],
        lr=hyper["learning_rate"],
        betas=(hyper["beta1"], hyper["beta2"]),
        eps=hyper["epsilon"],
        weight_decay=hyper["weight_decay"],
        fused=fused,
    )
