"""Optimizers of the model config."""

from __future__ import annotations

from typing import Any, Dict

import paddle
from harness.adapter import Unsupported
from harness.optimizers import update_rules
from paddle import nn


def from_model_config(
    model: nn.Layer, model_config: Dict[str, Any], names: Dict[str, str]
) -> paddle.optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name. ``names``: Paddle's names of
    trained parameters, by the names that frameworks share. Raises :class:`Unsupported` where LAMB's
    kernel cannot tell parameters with weight decay from those with a trust ratio."""
    hyper = model_config["hyperparameters"]
    rules = {names[name]: rule for name, rule in update_rules(names, hyper).items()}
    common = {"learning_rate": hyper["learning_rate"], "parameters": model.parameters()}
    if hyper["optimizer"] == "sgd":
        for parameter in model.parameters():
            if parameter.name in rules and not rules[parameter.name].weight_decay:
                parameter.regularizer = paddle.regularizer.L2Decay(0.0)
        return paddle.optimizer.Momentum(
            momentum=hyper["momentum"],
            # coupled: added to the gradient of all parameters without their own regularizer
            weight_decay=paddle.regularizer.L2Decay(hyper["weight_decay"]),
            use_multi_tensor=True,  # one update for all parameters, as in Momentum's reference
            **common,
        )
    limit = hyper.get("clip_global_norm")
    common.update(beta1=hyper["beta1"], beta2=hyper["beta2"], epsilon=hyper["epsilon"])
    common.update(grad_clip=None if limit is None else nn.ClipGradByGlobalNorm(limit))
    if hyper["optimizer"] == "lamb":
        all_scaled = all(rule.trust_ratio for rule in rules.values())
        if not all_scaled and any(bool(r.weight_decay) != r.trust_ratio for r in rules.values()):
            raise Unsupported(
                "PaddlePaddle's Lamb applies trust ratios either to parameters with weight decay "
                "or to all"
            )
        return paddle.optimizer.Lamb(
            lamb_weight_decay=hyper["weight_decay"],
            exclude_from_weight_decay_fn=lambda weight: not rules[weight.name].weight_decay,
            always_adapt=all_scaled,
            **common,
        )
    for parameter in model.parameters():  # not AdamW's lr_ratio, which exists on GPUs only
        if parameter.name in rules:
            parameter.optimize_attr["learning_rate"] = rules[parameter.name].rate_factor
    return paddle.optimizer.AdamW(
        weight_decay=hyper["weight_decay"],
        apply_decay_param_fun=lambda name: bool(rules[name].weight_decay),
        **common,
    )
