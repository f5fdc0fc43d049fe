"""Matmuls that a model runs, and the precision in which they can."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict, Sequence

import megengine
import megengine.functional as F
import megengine.module as M
from harness.adapter import CONVOLUTION_OIHW, Unsupported, Variable, variable_of
from megengine import Tensor


class Multiplication(M.Module):
    """A matmul of two tensors as a module, so that it can be watched like the others."""

    def __init__(self, transpose_b: bool = False) -> None:
        super().__init__()
        self.transpose_b = transpose_b

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return F.matmul(a, b, transpose_b=self.transpose_b)


def require_precision(precision: str) -> None:
    """Raise :class:`Unsupported` for every precision but float32."""
    if precision != "fp32":
        raise Unsupported(
            "MegEngine's kernels for CPUs compute in float32: float16 is a naive loop, and "
            "bfloat16 ends in an error"
        )


def state_of(model: M.Module) -> Dict[str, Variable]:
    """Return parameters and running statistics, see :meth:`harness.adapter.Adapter.state`."""
    layers = dict(model.named_modules())

    def variable(name: str, tensor: Tensor) -> Variable:
        prefix, _, ending = name.rpartition(".")
        layer, trained = layers[prefix], isinstance(tensor, megengine.Parameter)
        if isinstance(layer, M.Conv2d) and ending == "weight":  # groups have an axis of their own
            merged = (layer.out_channels, *tensor.shape[-3:])
            return Variable(tensor, CONVOLUTION_OIHW, trained, merged=merged)
        if isinstance(layer, (M.Conv2d, M.BatchNorm2d)):  # (1, channels, 1, 1)
            return Variable(tensor, trainable=trained, merged=(tensor.shape[1],))
        is_matrix = isinstance(layer, M.Linear) and ending == "weight"
        return variable_of(tensor, trained, is_matrix, layer)

    return {name: variable(name, tensor) for name, tensor in model.named_tensors()}


def watched(model: M.Module, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()`` by the dtype that their modules put out. Buffers of
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
