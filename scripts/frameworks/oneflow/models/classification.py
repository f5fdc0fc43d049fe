"""The loss of what tells classes apart."""

from __future__ import annotations

import oneflow.nn.functional as F
from oneflow import Tensor


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return a vector, (batch,), of logits (batch, classes). ``labels``: classes, or probabilities
    of all of them, (batch, classes)."""
    if labels.ndim > 1:
        return -(labels * F.log_softmax(logits, dim=-1)).sum(dim=-1)
    return F.cross_entropy(logits, labels, reduction="none")
