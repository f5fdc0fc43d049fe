"""One training step and one inference step, for any model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch import Tensor

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def evaluation(
    loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer
) -> Callable[[], Tensor]:
    """Return the step's first part: a function that drops the gradients and returns the loss, a
    scalar."""

    def evaluate() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        return loss()

    return evaluate


def gradients(evaluate: Callable[[], Tensor], scaler: torch.amp.GradScaler) -> Callable[[], Tensor]:
    """Return the step's part before the update: a function that returns the loss and leaves the
    gradients, scaled, in the parameters. A disabled ``scaler`` passes everything through."""

    def differentiate() -> Tensor:
        value = evaluate()
        scaler.scale(value).backward()  # DistributedDataParallel averages the gradients in here
        return value.detach()

    return differentiate


def accumulated(
    losses: Sequence[Callable[[], Tensor]],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    unsynchronized: Callable[[], AbstractContextManager[None]],
) -> Callable[[], Tensor]:
    """Run several micro-steps; return the mean loss and leave the accumulated gradients.

    Only the last backward pass all-reduces the sum. The others, forward passes included, run in
    ``unsynchronized()``, as the reference of DistributedDataParallel.no_sync says."""
    *earlier, last = losses

    def differentiate_one(loss: Callable[[], Tensor]) -> Tensor:
        value = loss() / len(losses)
        scaler.scale(value).backward()
        return value.detach()

    def differentiate() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        with unsynchronized():
            values = [differentiate_one(loss) for loss in earlier]
        values.append(differentiate_one(last))
        return torch.stack(values).sum()

    return differentiate


def updating(
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    clip: Optional[Callable[[], Any]],
) -> Callable[[], None]:
    """Return the step's last part, a function that updates the parameters. ``clip``: scales
    gradients down where their norm is too large."""

    def update() -> None:
        if clip is not None:
            scaler.unscale_(optimizer)  # the norm to clip is that of the unscaled gradients
            clip()
        scaler.step(optimizer)
        scaler.update()

    return update


def training(differentiate: Callable[[], Tensor], update: Callable[[], None]) -> Step:
    """Return a training step, which returns the loss, a scalar."""

    def step() -> Outputs:
        value = differentiate()
        update()
        return (value,)

    return step


def inference(forward: Step, mode: Callable[[], AbstractContextManager[Any]]) -> Step:
    """Return the step that returns the logits. ``mode``: in which there are no gradients."""

    def step() -> Outputs:
        with mode():
            return forward()

    return step
