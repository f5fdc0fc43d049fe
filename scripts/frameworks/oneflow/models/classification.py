"""The loss of what tells classes apart."""

from __future__ import annotations

import oneflow.nn.functional as F
from oneflow import Tensor


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy of each sample, (batch,), from logits (batch, classes). ``labels``:
    class indices, or probabilities of all classes, (batch, classes)."""
    if labels.ndim > 1:
        return -(labels * F.log_softmax(logits, dim=-1)).sum(dim=-1)
    return F.cross_entropy(logits, labels, reduction="none")
