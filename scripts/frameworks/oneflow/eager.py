"""One training step and one inference step in eager mode, for any model."""

from __future__ import annotations

from typing import Callable, Tuple

import oneflow
from oneflow import Tensor, optim

Outputs = Tuple[Tensor, ...]
Step = Callable[[], Outputs]


def gradients(
    forward: Step,
    losses: Callable[[Outputs], Outputs],
    optimizer: optim.Optimizer,
    views: bool,
) -> Step:
    """The step's first part: it returns the losses and leaves the gradients in the parameters.

    ``views``: they are views of the buckets of DistributedDataParallel, to which backward passes
    add; only then must they be zeroed, and not be dropped, which OneFlow recommends."""

    def differentiate() -> Outputs:
        optimizer.zero_grad(set_to_none=not views)
        found = losses(forward())
        sum(vector.mean() for vector in found).backward()  # with DistributedDataParallel averaged
        return tuple(vector.detach() for vector in found)

    return differentiate


def training(differentiate: Step, optimizer: optim.Optimizer, clip: bool) -> Step:
    """The step that returns the losses. ``clip``: by the global norm that ``optimizer`` knows."""

    def step() -> Outputs:
        found = differentiate()
        if clip:
            optimizer.clip_grad()
        optimizer.step()
        return found

    return step


def inference(forward: Step) -> Step:
    """The step that returns the logits."""

    def step() -> Outputs:
        with oneflow.no_grad():
            return forward()

    return step
