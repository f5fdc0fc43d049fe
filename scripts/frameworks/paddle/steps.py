"""One training step and one inference step, for any model."""

from __future__ import annotations

from typing import Callable, Tuple

import paddle
from paddle import Tensor

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def gradients(
    forward: Step,
    loss: Callable[[Outputs], Tensor],
    optimizer: paddle.optimizer.Optimizer,
    scaler: paddle.amp.GradScaler,
) -> Callable[[], Tensor]:
    """The step's first part: it returns the loss, a scalar, and leaves the gradients, scaled, in
    the parameters. A disabled ``scaler`` passes everything through."""

    def differentiate() -> Tensor:
        optimizer.clear_grad(set_to_zero=False)  # freed: the backward pass writes, not adds
        value = loss(forward())
        scaler.scale(value).backward()  # DataParallel averages the gradients in here
        return value.detach()

    return differentiate


def training(
    differentiate: Callable[[], Tensor],
    optimizer: paddle.optimizer.Optimizer,
    scaler: paddle.amp.GradScaler,
) -> Step:
    """The step that returns the loss, a scalar."""

    def step() -> Outputs:
        value = differentiate()
        scaler.step(optimizer)  # clips the unscaled gradients where the optimizer says so
        scaler.update()
        return (value,)

    return step


def inference(forward: Step) -> Step:
    """The step that returns the logits."""
    return paddle.no_grad()(forward)
