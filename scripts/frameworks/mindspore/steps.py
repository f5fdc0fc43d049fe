"""Gradients of a training step, of one or several micro-steps."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence, Tuple

from mindspore import Tensor

Batches = Sequence[Dict[str, Any]]
Gradients = Sequence[Tensor]
Differentiate = Callable[[Dict[str, Any], float], Tuple[Tensor, Gradients]]


def unchanged(gradients: Gradients) -> Gradients:
    """Return the ``gradients`` of this rank alone."""
    return gradients


def accumulated(
    differentiate: Differentiate, average: Callable[[Gradients], Gradients]
) -> Callable[[Batches], Tuple[Tensor, Gradients]]:
    """Return a function from micro-batches to the mean of their losses, and of their gradients.

    ``differentiate`` returns loss and gradients of a batch, times a share. ``average`` runs over
    the ranks, once."""

    def run(batches: Batches) -> Tuple[Tensor, Gradients]:
        share = 1.0 / len(batches)
        total, sums = differentiate(batches[0], share)
        for batch in batches[1:]:
            loss, gradients = differentiate(batch, share)
            total, sums = total + loss, [own + other for own, other in zip(sums, gradients)]
        return total, average(sums)

    return run
