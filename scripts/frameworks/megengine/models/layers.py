"""Initial values and losses of the models."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Tuple

import megengine.functional as F
import megengine.module as M
import networks
from megengine import Tensor
from networks.losses import loss_parts

INITIALIZERS: Dict[str, Callable[[Tensor, float], Any]] = {
    "normal": lambda tensor, deviation: M.init.normal_(tensor, 0.0, deviation),
    "uniform": lambda tensor, bound: M.init.uniform_(tensor, -bound, bound),
    "constant": M.init.fill_,
}


def initialized(model: M.Module, weights: Mapping[str, networks.Weight]) -> M.Module:
    networks.initialize(model.named_parameters(), weights, INITIALIZERS)
    return model


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each label, a vector."""
    if labels.ndim == logits.ndim:  # probabilities
        return -(labels * F.logsoftmax(logits, 1)).sum(1)
    if logits.ndim > 2:
        logits, labels = F.flatten(logits, 0, 1), F.flatten(labels)
    return F.loss.cross_entropy(logits, labels, reduction="none")


def losses(
    outputs: Tuple[Tensor, ...], batch: Dict[str, Tensor], model_config: Dict[str, Any]
) -> List[Tensor]:
    """Return vectors of losses, whose means add up to the loss."""
    hyper = model_config["hyperparameters"]
    return loss_parts(outputs, batch, hyper, cross_entropies, lambda x: x.transpose(0, 2, 1))
