"""One training step and one inference step, for any model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Callable, Sequence, Tuple

import paddle
from paddle import Tensor

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def evaluation(
    loss: Callable[[], Tensor], optimizer: paddle.optimizer.Optimizer
) -> Callable[[], Tensor]:
    """Return the step's first part: it drops the gradients and returns the loss, a scalar."""

    def evaluate() -> Tensor:
        optimizer.clear_grad(set_to_zero=False)  # freed: the backward pass writes, not adds
        return loss()

    return evaluate


def gradients(
    evaluate: Callable[[], Tensor], scaler: paddle.amp.GradScaler
) -> Callable[[], Tensor]:
    """Return the step's part before the update: a function that returns the loss and leaves the
    gradients, scaled, in the parameters. A disabled ``scaler`` passes everything through."""

    def differentiate() -> Tensor:
        value = evaluate()
        scaler.scale(value).backward()  # DataParallel averages the gradients in here
        return value.detach()

    return differentiate


def accumulated(
    losses: Sequence[Callable[[], Tensor]],
    optimizer: paddle.optimizer.Optimizer,
    scaler: paddle.amp.GradScaler,
    unsynchronized: Callable[[], "AbstractContextManager[Any]"],
) -> Callable[[], Tensor]:
    """Run several micro-steps; return the mean loss and leave the accumulated gradients.

    Only the last backward pass all-reduces the sum. The others, forward passes included, run in
    ``unsynchronized()``, as the reference of DataParallel.no_sync has it."""
    *earlier, last = losses

    def differentiate_one(loss: Callable[[], Tensor]) -> Tensor:
        value = loss() / len(losses)
        scaler.scale(value).backward()
        return value.detach()

    def differentiate() -> Tensor:
        optimizer.clear_grad(set_to_zero=False)
        with unsynchronized():
            values = [differentiate_one(loss) for loss in earlier]
        values.append(differentiate_one(last))
        return paddle.add_n(values)

    return differentiate


def updating(
    optimizer: paddle.optimizer.Optimizer, scaler: paddle.amp.GradScaler
) -> Callable[[], None]:
    """Return the step's last part."""

    def update() -> None:
        scaler.step(optimizer)  # clips the unscaled gradients where the optimizer says so
        scaler.update()

    return update


def training(differentiate: Callable[[], Tensor], update: Callable[[], None]) -> Step:
    """Return the step that returns the loss, a scalar."""

    def step() -> Outputs:
        value = differentiate()
        update()
        return (value,)

    return step


def inference(forward: Step) -> Step:
    """Return the step that returns the logits."""
    return paddle.no_grad()(forward)
