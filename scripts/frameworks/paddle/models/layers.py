"""Initial values of all models' parameters, and the loss of most."""

from __future__ import annotations

from typing import Any, Callable, Dict, Mapping, Tuple

import networks
import paddle.nn.functional as F
from harness.adapter import Definition
from networks import total_loss
from paddle import Tensor, nn

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.initializer.Normal(0.0, deviation)(tensor),
    "uniform": lambda tensor, bound: nn.initializer.Uniform(-bound, bound)(tensor),
    "constant": lambda tensor, value: nn.initializer.Constant(value)(tensor),
}


def initialized(model: nn.Layer, weights: Mapping[str, networks.Weight]) -> nn.Layer:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    soft = labels.ndim == logits.ndim
    if logits.ndim > 2:
        logits, labels = logits.flatten(0, 1), labels.flatten()
    return F.cross_entropy(logits.astype("float32"), labels, soft_label=soft)


class ModelDefinition(Definition):
    def loss(self, outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor]) -> Tensor:
        return total_loss(
            outputs, batch, self.hyper, cross_entropy, lambda x: x.transpose([0, 2, 1])
        )
