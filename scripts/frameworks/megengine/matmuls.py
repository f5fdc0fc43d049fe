"""Matmuls that a model runs."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Sequence

import megengine
import megengine.functional as F
import megengine.module as M
from megengine import Tensor


class Multiplication(M.Module):
    """A matmul of two tensors as a module, so that it can be watched like the others."""

    def __init__(self, transpose_b: bool = False) -> None:
        super().__init__()
        self.transpose_b = transpose_b

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.matmul(a, b, transpose_b=self.transpose_b)


def watched(model: M.Module, forward: Callable[[], Any]) -> Dict[str, int]:
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
