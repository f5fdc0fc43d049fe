"""Initial values and losses of the models."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Tuple

import megengine.functional as F
import megengine.module as M
import networks
from harness.adapter import Definition
from megengine import Tensor
from networks import total_loss

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: M.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: M.init.uniform_(tensor, -bound, bound),
    "constant": M.init.fill_,
}


def initialized(model: M.Module, weights: Mapping[str, networks.Weight]) -> M.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean. Labels are class indices, or probabilities of all classes."""
    if labels.ndim == logits.ndim:
        return -(labels * F.logsoftmax(logits, 1)).sum(1).mean()
    if logits.ndim > 2:
        logits, labels = F.flatten(logits, 0, 1), F.flatten(labels)
    return F.loss.cross_entropy(logits, labels)


class ModelDefinition(Definition):
    def loss(self, outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor]) -> Tensor:
        return total_loss(outputs, batch, self.hyper, cross_entropy, lambda x: x.transpose(0, 2, 1))
