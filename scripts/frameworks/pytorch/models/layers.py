"""Initial values of all models' parameters, and the loss of most."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Tuple

import networks
import torch
import torch.nn.functional as F
from harness.adapter import Definition
from networks import total_loss
from torch import Tensor, nn

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: nn.init.uniform_(tensor, -bound, bound),
    "constant": nn.init.constant_,
}


def initialized(model: nn.Module, weights: Mapping[str, networks.Weight]) -> nn.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    if logits.dim() > 2:
        logits, labels = logits.flatten(0, 1), labels.flatten()
    return F.cross_entropy(logits.float(), labels)


class ModelDefinition(Definition):
    MEMORY_FORMAT = torch.contiguous_format

    def loss(self, outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor]) -> Tensor:
        return total_loss(outputs, batch, self.hyper, cross_entropy, lambda x: x.transpose(1, 2))
