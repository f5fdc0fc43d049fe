"""OneFlow's own mixed precision, tried before it is relied on: where it has no effect it says
nothing or only warns."""

from __future__ import annotations

import warnings
from typing import Tuple

import oneflow
from harness.adapter import Unsupported, mixed_dtype
from oneflow import Tensor, nn

from . import matmuls


def amp_dtype(precision: str, device: oneflow.device, graph: bool, train: bool) -> oneflow.dtype:
    """Return the dtype of matmuls in the mixed ``precision``, by default float16. Raises
    :class:`Unsupported` where matmuls stay in float32."""
    name = mixed_dtype(precision, ("float16", "bfloat16"), "OneFlow")
    dtype: oneflow.dtype = getattr(oneflow, name)
    eager, warning = _autocast(device, dtype)
    if graph:
        if _enable_amp(device, dtype) == "float32":
            raise Unsupported(
                f"nn.Graph's enable_amp leaves products in float32; OneFlow warns: {warning}"
            )
        return dtype
    if eager == oneflow.float32:
        raise Unsupported(f"autocast leaves products in float32; OneFlow warns: {warning}")
    if train and name == "float16" and not hasattr(oneflow.amp.GradScaler, "scale"):
        raise Unsupported("OneFlow's GradScaler, which float16 needs, works in nn.Graph alone")
    return dtype


def _operands(device: oneflow.device) -> Tuple[Tensor, Tensor]:
    return oneflow.ones(4, 4, device=device), oneflow.ones(4, 4, device=device)


def _autocast(device: oneflow.device, dtype: oneflow.dtype) -> Tuple[oneflow.dtype, str]:
    """Return the dtype of a matmul in eager mode, and what OneFlow warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with oneflow.autocast(device.type, dtype=dtype):
            result = oneflow.matmul(*_operands(device)).dtype
    return result, "; ".join(str(warning.message) for warning in caught)


class _Matmul(nn.Graph):
    def __init__(self, dtype: oneflow.dtype) -> None:
        super().__init__()
        self.config.enable_amp(True, dtype=dtype)

    def build(self, a: Tensor, b: Tensor) -> Tensor:
        return oneflow.matmul(a, b)


def _enable_amp(device: oneflow.device, dtype: oneflow.dtype) -> str:
    """Return the dtype of a matmul in a graph."""
    graph = _Matmul(dtype)
    graph(*_operands(device))
    (matmul,) = matmuls.compiled(graph, ranks=1)
    return matmul.dtype
