"""Optimizers of the model config, each parameter updated by a fused kernel where PyTorch has one,
and LAMB (You et al. 2019, arXiv:1904.00962), which ``torch.optim`` lacks."""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch
from harness.adapter import Unsupported
from harness.optimizers import UpdateRule, update_rules
from torch import Tensor, nn

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
            raise Unsupported("LAMB's ratio of norms needs whole parameters, not parts")
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


class Lamb(torch.optim.Optimizer):
    """LAMB whose operations cover all parameters of a group at once (``torch._foreach_*``), like
    PyTorch's own optimizers that are not fused.

    ``trust_ratio`` of a group: whether its updates are scaled by the parameter's norm over the
    update's norm. Parameters are whole."""

    def __init__(
        self, groups: Sequence[Dict[str, Any]], lr: float, betas: Tuple[float, float], eps: float
    ) -> None:
        options = {"weight_decay": 0.0, "trust_ratio": True, "steps": 0, "fused": False}
        super().__init__(groups, {"lr": lr, "betas": betas, "eps": eps, **options})

    def step(self, closure: Any = None) -> None:
        with torch.no_grad():
            for group in self.param_groups:
                parameters = [
                    parameter for parameter in group["params"] if parameter.grad is not None
                ]
                if parameters:
                    self._update(group, parameters)

    def _update(self, group: Dict[str, Any], parameters: Sequence[Tensor]) -> None:
        group["steps"] += 1
        beta1, beta2 = group["betas"]
        gradients = [parameter.grad for parameter in parameters]
        means, squares = self._moments("mean", parameters), self._moments("square", parameters)
        torch._foreach_lerp_(means, gradients, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta2)
        changes = torch._foreach_sqrt(squares)
        torch._foreach_div_(changes, math.sqrt(1 - beta2 ** group["steps"]))
        torch._foreach_add_(changes, group["eps"])
        torch._foreach_reciprocal_(changes)
        torch._foreach_mul_(changes, means)
        torch._foreach_div_(changes, 1 - beta1 ** group["steps"])
        if group["weight_decay"]:
            torch._foreach_add_(changes, parameters, alpha=group["weight_decay"])
        if group["trust_ratio"]:
            torch._foreach_mul_(changes, list(_ratios(parameters, changes).unbind()))
        torch._foreach_add_(parameters, changes, alpha=-group["lr"])

    def _moments(self, name: str, parameters: Sequence[Tensor]) -> List[Tensor]:
        for parameter in parameters:
            if name not in self.state[parameter]:
                self.state[parameter][name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in parameters]


def _ratios(weights: Sequence[Tensor], changes: Sequence[Tensor]) -> Tensor:
    """Return the norms of ``weights`` over those of ``changes``; 1 where either is zero. The ratios
    stay on the device, and are float32 at least."""
    dtype = torch.promote_types(weights[0].dtype, torch.float32)
    of_weights, of_changes = (
        torch.stack(torch._foreach_norm(some, 2, dtype=dtype)) for some in (weights, changes)
    )
    scalable = (of_weights > 0) & (of_changes > 0)
    return torch.where(scalable, of_weights / of_changes, 1.0)
