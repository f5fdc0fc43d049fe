"""The facts' optimizers."""

from __future__ import annotations

from typing import Any, Dict

import paddle
from harness import layerwise
from paddle import nn


def from_facts(model: nn.Layer, facts: Dict[str, Any]) -> paddle.optimizer.Optimizer:
    """The optimizer that the model's hyper-parameters name."""
    hyper = facts["hyperparameters"]
    common = {"learning_rate": hyper["learning_rate"], "parameters": model.parameters()}
    if hyper["optimizer"] == "sgd":
        return paddle.optimizer.Momentum(
            momentum=hyper["momentum"],
            # coupled: added to the gradient, on all parameters
            weight_decay=paddle.regularizer.L2Decay(hyper["weight_decay"]),
            use_multi_tensor=True,  # one update for all parameters, as Momentum's reference says
            **common,
        )
    if layerwise.decays(facts):  # not by AdamW's lr_ratio, which is of GPUs alone
        for name, parameter in model.named_parameters():
            parameter.optimize_attr["learning_rate"] = layerwise.factor(name, hyper)
    limit = hyper.get("clip_global_norm")
    return paddle.optimizer.AdamW(
        beta1=hyper["beta1"],
        beta2=hyper["beta2"],
        epsilon=hyper["epsilon"],
        weight_decay=hyper["weight_decay"],
        grad_clip=None if limit is None else nn.ClipGradByGlobalNorm(limit),
        **common,
    )
