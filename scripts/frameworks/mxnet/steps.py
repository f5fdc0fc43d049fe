"""One training step and one inference step, for any model."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, List, Optional, Sequence, Tuple

from mxnet import autograd, nd
from mxnet.contrib import amp

from .optimizers import AdamW

Outputs = Tuple[Any, ...]
Step = Callable[[], Outputs]


def inference(model: Any, inputs: Tuple[Any, ...]) -> Step:
    """Return the step that returns the logits."""

    def forward() -> Outputs:
        outputs = model(*inputs)
        return tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)

    return forward


def evaluation(
    forward: Step, loss: Callable[[Outputs], Any], trainer: Any
) -> Callable[[], Tuple[Any, Any]]:
    """Return the step's first part, a function that returns the loss, an array (1,), and the value
    to differentiate: the loss, scaled under float16."""
    float16 = hasattr(trainer, "_amp_loss_scaler")

    def evaluate() -> Tuple[Any, Any]:
        with autograd.record():
            value = loss(forward())
            scaling = amp.scale_loss(value, trainer) if float16 else contextlib.nullcontext(value)
            with scaling as scaled:
                return value, scaled

    return evaluate


def gradients(
    evaluate: Callable[[], Tuple[Any, Any]],
    sum_over_ranks: Optional[Callable[[List[Any]], None]],
    gradients: List[Any],
) -> Callable[[], Any]:
    """Return the step's part before the update: a function that returns the loss and leaves in
    ``gradients`` the sums over all ranks. :func:`gradient_scale` gives the factor to the true
    gradients."""

    def differentiate() -> Any:
        value, scaled = evaluate()
        scaled.backward()
        if sum_over_ranks is not None:
            sum_over_ranks(gradients)
        return value

    return differentiate


def accumulated(
    evaluations: Sequence[Callable[[], Tuple[Any, Any]]],
    parameters: List[Any],
    sum_over_ranks: Optional[Callable[[List[Any]], None]],
    gradients: List[Any],
) -> Callable[[], Any]:
    """Return a function that runs several micro-steps, each of which adds to the gradients of
    ``parameters``, and returns the mean loss.

    ``grad_req`` is "add". Ranks sum their gradients once, after the last micro-step."""

    def differentiate() -> Any:
        values = []
        for parameter in parameters:
            parameter.zero_grad()
        for evaluate in evaluations:
            value, scaled = evaluate()
            scaled.backward()
            values.append(value)
        if sum_over_ranks is not None:
            sum_over_ranks(gradients)
        return nd.add_n(*values)

    return differentiate


def gradient_scale(trainer: Any, ranks: int) -> float:
    """Return the factor for the gradients after ``differentiate``.

    The trainer divides by the loss scale of that pass and by the number of ranks."""
    return trainer._scale / ranks


def updating(trainer: Any, ranks: int, gradients: List[Any]) -> Callable[[], None]:
    """Return the step's last part."""

    def update() -> None:
        if isinstance(trainer.optimizer, AdamW):
            trainer.optimizer.clip(gradients, gradient_scale(trainer, ranks))
        trainer.update(ranks)  # nothing, where a float16 gradient overflowed

    return update


def training(differentiate: Callable[[], Any], update: Callable[[], None]) -> Step:
    """Return the step that returns the loss, an array (1,)."""

    def step() -> Outputs:
        value = differentiate()
        update()
        return (value,)

    return step
