"""Matmuls that a step runs, and its optimizer. MegEngine's optimizers follow the rules of
``torch.optim``: SGD's weight decay is part of the gradient, AdamW's is not; epsilon is added after
the bias correction."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Mapping, Sequence

import megengine
import megengine.functional as F
import megengine.module as M
from harness.optimizers import groups_by_decay
from megengine import Parameter, Tensor, optimizer


class Multiplication(M.Module):
    """A matmul of two tensors as a module, so that it can be watched like the others."""

    def __init__(self, transpose_b: bool = False) -> None:
        super().__init__()
        self.transpose_b = transpose_b

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.matmul(a, b, transpose_b=self.transpose_b)


def count_matmuls(model: M.Module, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()`` by the dtype of their modules' outputs. Buffers of
    ``model`` (running statistics) are left as they were."""
    counts: Dict[str, int] = Counter()

    def note(module: M.Module, inputs: Sequence[Tensor], output: Tensor) -> None:
        counts[output.dtype.name] += 1

    kinds = (M.Conv2d, M.Linear, Multiplication)
    hooks = [m.register_forward_hook(note) for m in model.modules() if isinstance(m, kinds)]
    kept = [(buffer, buffer.numpy().copy()) for buffer in model.buffers()]
    forward()
    for hook in hooks:
        hook.remove()
    for buffer, before in kept:
        buffer[...] = megengine.tensor(before)
    return dict(counts)


def optimizer_of(
    parameters: Mapping[str, Parameter], model_config: Dict[str, Any]
) -> optimizer.Optimizer:
    """Return the optimizer that the model's hyper-parameters name, for all ``parameters``."""
    hyper = model_config["hyperparameters"]
    groups, rate = groups_by_decay(parameters, hyper), hyper["learning_rate"]
    if hyper["optimizer"] == "sgd":
        return optimizer.SGD(groups, rate, momentum=hyper["momentum"])
    betas = (hyper["beta1"], hyper["beta2"])
    return optimizer.AdamW(groups, rate, betas=betas, eps=hyper["epsilon"])
