"""Initial values, dropout and losses of the models."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

import networks
import oneflow
import oneflow.nn.functional as F
from harness.adapter import Definition
from networks import loss_parts
from oneflow import Tensor, nn

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: nn.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: nn.init.uniform_(tensor, -bound, bound),
    "constant": nn.init.constant_,
}


def initialized(model: nn.Module, weights: Mapping[str, networks.Weight]) -> nn.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model


def dropout(rate: float) -> nn.Dropout:
    # By default every nn.Dropout creates its own generator, all with one fixed seed: layers of
    # equal shape would drop the same positions in all ranks and runs.
    return nn.Dropout(rate, generator=oneflow.default_generator)


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each label, a vector."""
    logits = logits.float()
    if labels.ndim == logits.ndim:  # labels are probabilities
        return -(labels * F.log_softmax(logits, dim=-1)).sum(dim=-1)
    if logits.ndim > 2:
        logits, labels = logits.flatten(0, 1), labels.flatten()
    return F.cross_entropy(logits, labels, reduction="none")


class ModelDefinition(Definition):
    def losses(self, outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor]) -> List[Tensor]:
        """Return vectors of losses, whose means add up to the loss."""
        return loss_parts(outputs, batch, self.hyper, cross_entropies, lambda x: x.transpose(1, 2))
