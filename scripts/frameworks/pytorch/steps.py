"""One training step and one inference step, for any model."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

import torch
from torch import Tensor, nn

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def evaluation(
    forward: Step, loss: Callable[[Outputs], Tensor], optimizer: torch.optim.Optimizer
) -> Callable[[], Tensor]:
    """The step's first part: it drops the gradients and returns the loss, a scalar."""

    def evaluate() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        return loss(forward())

    return evaluate


def gradients(evaluate: Callable[[], Tensor], scaler: torch.amp.GradScaler) -> Callable[[], Tensor]:
    """The step until its update: it returns the loss and leaves the gradients, scaled, in the
    parameters. A disabled ``scaler`` passes everything through."""

    def differentiate() -> Tensor:
        value = evaluate()
        scaler.scale(value).backward()  # DistributedDataParallel averages the gradients in here
        return value.detach()

    return differentiate


def updating(
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    parameters: List[nn.Parameter],
    clip_global_norm: Optional[float],
) -> Callable[[], None]:
    """The step's last part."""

    def update() -> None:
        if clip_global_norm is not None:
            scaler.unscale_(optimizer)  # the norm to clip is that of the unscaled gradients
            nn.utils.clip_grad_norm_(parameters, clip_global_norm)
        scaler.step(optimizer)
        scaler.update()

    return update


def training(differentiate: Callable[[], Tensor], update: Callable[[], None]) -> Step:
    """The step that returns the loss, a scalar."""

    def step() -> Outputs:
        value = differentiate()
        update()
        return (value,)

    return step


def inference(forward: Step) -> Step:
    """The step that returns the logits."""
    return torch.inference_mode()(forward)
