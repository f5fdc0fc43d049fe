"""Matmuls and convolutions: in which dtype they run, and how many multiply-adds they are, watched
where PyNative dispatches them."""

from __future__ import annotations

import math
from typing import Any, Callable, List, Sequence

import numpy as np
from harness.adapter import ExecutedMatmul, Unsupported
from mindspore import MsDispatchMode, Tensor, bfloat16, nn, ops

#: Operators of the forward pass that multiply.
OPERATORS = ("Conv2D", "MatMul", "BatchMatMul", "MatMulExt", "BatchMatMulExt", "Dense", "LSTM")


def refuse_halves() -> None:
    """Raise :class:`Unsupported`, with MindSpore's words, where it has no matmul in half precision.

    In float16 one runs, between conversions to float32 and back: its kernels have none either."""
    half = Tensor(np.ones((2, 2), np.float32)).astype(bfloat16)
    try:
        ops.matmul(half, half).asnumpy()
    except (TypeError, RuntimeError) as error:
        words = " ".join(str(error).split())
        raise Unsupported(f"bfloat16: {words.partition(' The supported')[0]}") from error
    raise Unsupported("this adapter has no mixed precision, though MindSpore multiplies bfloat16")


def multiply(left: Any, right: Any) -> Any:
    """Multiply two arrays, see :meth:`harness.adapter.Rounding.matmul_result`."""
    if left.ndim == 2:
        return ops.matmul(Tensor(left), Tensor(right)).asnumpy()
    images = Tensor(np.ascontiguousarray(left.transpose(0, 3, 1, 2)))
    kernel = Tensor(np.ascontiguousarray(right.transpose(3, 2, 0, 1)))
    return ops.conv2d(images, kernel).asnumpy().transpose(0, 2, 3, 1)


class Watch(MsDispatchMode):
    """Operators that are dispatched meanwhile, and which of them multiply."""

    def __init__(self) -> None:
        super().__init__()
        self.names: List[str] = []
        self.found: List[ExecutedMatmul] = []

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.names.append(func.name)
        if func.name in OPERATORS:
            # an operator that is an object comes before its own name and the operands
            operands = args[2] if len(args) == 3 and isinstance(args[1], str) else args
            self.found.append(_matmul(func.name, operands, result))
        return result


def watched(network: nn.Cell, forward: Callable[[], Any]) -> List[ExecutedMatmul]:
    """Return the matmuls of one ``forward()``. Running statistics are left as they were."""
    statistics = [one for one in network.get_parameters() if "moving_" in one.name]
    kept = [one.asnumpy().copy() for one in statistics]
    with Watch() as watch:
        forward()
    for one, before in zip(statistics, kept):
        ops.assign(one, Tensor(before))
    return watch.found


def _matmul(name: str, operands: Sequence[Any], result: Any) -> ExecutedMatmul:
    left, right = operands[:2]
    output = result[0] if isinstance(result, (tuple, list)) else result
    if name == "Conv2D":
        summands = math.prod(right.shape[1:])
    elif name == "LSTM":  # four gates of what enters and of the step before, all steps in one
        summands = 4 * (left.shape[-1] + output.shape[-1])
    else:
        is_transposed = name != "Dense" and len(operands) > 2 and operands[2] is True
        summands = left.shape[-2 if is_transposed else -1]
    return ExecutedMatmul(str(left.dtype).lower(), math.prod(output.shape) * summands)
