"""One training step and one inference step, for any model."""

from __future__ import annotations

from typing import Callable, List, Optional, Tuple

import torch
from torch import Tensor, nn

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def gradients(
    forward: Step,
    loss: Callable[[Outputs], Tensor],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
) -> Callable[[], Tensor]:
    """The step's first part: it returns the loss, a scalar, and leaves the gradients, scaled, in
    the parameters. A disabled ``scaler`` passes everything through."""

    def differentiate() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        value = loss(forward())
        scaler.scale(value).backward()  # DistributedDataParallel averages the gradients in here
        return value.detach()

    return differentiate


def training(
    differentiate: Callable[[], Tensor],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    parameters: List[nn.Parameter],
    clip_global_norm: Optional[float],
) -> Step:
    """The step that returns the loss, a scalar."""

    def step() -> Outputs:
        value = differentiate()
        if clip_global_norm is not None:
            scaler.unscale_(optimizer)  # the norm to clip is that of the unscaled gradients
            nn.utils.clip_grad_norm_(parameters, clip_global_norm)
        scaler.step(optimizer)
        scaler.update()
        return (value,)

    return step


def inference(forward: Step) -> Step:
    """The step that returns the logits."""
    return torch.inference_mode()(forward)
