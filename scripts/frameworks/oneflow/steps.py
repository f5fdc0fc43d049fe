"""One training step and one inference step in eager mode, for any model."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

import oneflow
from oneflow import Tensor, optim

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def evaluation(
    forward: Step,
    losses: Callable[[Outputs], Outputs],
    optimizer: optim.Optimizer,
    views: bool,
) -> Step:
    """Return the step's first part: it empties the gradients and returns the losses.

    ``views``: they are views of the buckets of DistributedDataParallel, to which backward passes
    add; only then must they be zeroed, and not be dropped, which OneFlow recommends."""

    def evaluate() -> Outputs:
        optimizer.zero_grad(set_to_none=not views)
        return losses(forward())

    return evaluate


def backward(losses: Outputs) -> None:
    """Leave the gradients in the parameters, where DistributedDataParallel averages them."""
    sum(vector.mean() for vector in losses).backward()


def gradients(evaluate: Step) -> Step:
    """Return the step's part before the update: a function that returns the losses and leaves the
    gradients in the parameters."""

    def differentiate() -> Outputs:
        losses = evaluate()
        backward(losses)
        return tuple(vector.detach() for vector in losses)

    return differentiate


def clip_global_norm(gradients: List[Tensor], limit: float) -> None:
    """Scale ``gradients``, in place, so that their global norm is at most ``limit``.

    Not OneFlow's ``clip_grad``: on a CPU its norm adds up squares one after the other in float32
    and loses the small ones, 2.6 % of the norm of BERT's 23 million word embeddings."""
    norm = oneflow.stack([(gradient * gradient).sum() for gradient in gradients]).sum().sqrt()
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)  # 1e-6: as in clip_grad
    for gradient in gradients:
        gradient.mul_(factor)


def updating(optimizer: optim.Optimizer, limit: Optional[float]) -> Callable[[], None]:
    """Return the step's last part. ``limit``: of the gradients' global norm, if any."""
    parameters = [p for group in optimizer.param_groups for p in group.parameters]

    def update() -> None:
        if limit is not None:
            clip_global_norm([parameter.grad for parameter in parameters], limit)
        optimizer.step()

    return update


def training(differentiate: Step, update: Callable[[], None]) -> Step:
    """Return the step that returns the losses."""

    def step() -> Outputs:
        losses = differentiate()
        update()
        return losses

    return step


def inference(forward: Step) -> Step:
    """Return the step that returns the logits."""

    def step() -> Outputs:
        with oneflow.no_grad():
            return forward()

    return step
