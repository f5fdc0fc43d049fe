"""Optimizers of the model config."""

from __future__ import annotations

from typing import Any, Dict

import paddle
from harness import layerwise
from harness.adapter import Unsupported
from harness.optimizers import NO_DECAY, NO_TRUST_RATIO, left_out
from paddle import nn


def from_model_config(
    model: nn.Layer, model_config: Dict[str, Any], names: Dict[str, str]
) -> paddle.optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name. ``names``: Paddle's names of
    trained parameters, by the names that frameworks share."""
    hyper = model_config["hyperparameters"]
    common = {"learning_rate": hyper["learning_rate"], "parameters": model.parameters()}
    undecayed = {names[name] for name in left_out(hyper, NO_DECAY, names)}
    if hyper["optimizer"] == "sgd":
        for parameter in model.parameters():
            if parameter.name in undecayed:
                parameter.regularizer = paddle.regularizer.L2Decay(0.0)
        return paddle.optimizer.Momentum(
            momentum=hyper["momentum"],
            # coupled: added to the gradient, on all parameters without a regularizer of their own
            weight_decay=paddle.regularizer.L2Decay(hyper["weight_decay"]),
            use_multi_tensor=True,  # one update for all parameters, as Momentum's reference says
            **common,
        )
    if layerwise.decays(model_config):  # not by AdamW's lr_ratio, which is of GPUs alone
        for name, parameter in model.named_parameters():
            parameter.optimize_attr["learning_rate"] = layerwise.factor(name, hyper)
    limit = hyper.get("clip_global_norm")
    common.update(beta1=hyper["beta1"], beta2=hyper["beta2"], epsilon=hyper["epsilon"])
    common.update(grad_clip=None if limit is None else nn.ClipGradByGlobalNorm(limit))
    if hyper["optimizer"] == "lamb":
        return _lamb(hyper, names, common)
    return paddle.optimizer.AdamW(
        weight_decay=hyper["weight_decay"],
        apply_decay_param_fun=lambda name: name not in undecayed,
        **common,
    )


def _lamb(
    hyper: Dict[str, Any], names: Dict[str, str], common: Dict[str, Any]
) -> paddle.optimizer.Lamb:
    """Return LAMB. Raises :class:`Unsupported` where some parameters have only one of weight decay
    and ratio of norms: Paddle's kernel scales those that decay, or all."""
    undecayed = left_out(hyper, NO_DECAY, names) if hyper["weight_decay"] else frozenset(names)
    unscaled = left_out(hyper, NO_TRUST_RATIO, names)
    if unscaled and unscaled != undecayed:
        raise Unsupported(
            "PaddlePaddle's Lamb applies trust ratios to what decays or to everything: not "
            f"{NO_TRUST_RATIO} {hyper[NO_TRUST_RATIO]} with {NO_DECAY} {hyper[NO_DECAY]}"
        )
    without = {names[name] for name in undecayed}
    return paddle.optimizer.Lamb(
        lamb_weight_decay=hyper["weight_decay"],
        exclude_from_weight_decay_fn=lambda parameter: parameter.name in without,
        always_adapt=not unscaled,
        **common,
    )
