"""LAMB (You et al. 2019, arXiv:1904.00962), which ``torch.optim`` lacks, as an optimizer of
PyTorch. Each operation covers all parameters of a group at once (``torch._foreach_*``), like
PyTorch's own optimizers that are not fused."""

from __future__ import annotations

import math
from typing import Any, Dict, List, Sequence, Tuple

import torch
from torch import Tensor


class Lamb(torch.optim.Optimizer):
    """``trust_ratio`` of a group: whether its updates are scaled by the norm of the parameter over
    their own. Parameters are whole."""

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
    """Return the norms of ``weights`` over those of ``changes``; 1 where either is zero. They stay
    on the device, and are float32 at least."""
    dtype = torch.promote_types(weights[0].dtype, torch.float32)
    of_weights, of_changes = (
        torch.stack(torch._foreach_norm(some, 2, dtype=dtype)) for some in (weights, changes)
    )
    scalable = (of_weights > 0) & (of_changes > 0)
    return torch.where(scalable, of_weights / of_changes, 1.0)
