"""Matmuls and convolutions: in which dtype they run, and how many multiply-adds they are, watched
where PyNative dispatches them."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from typing import Any, Callable, Dict, Iterator, Sequence

import numpy as np
from harness.adapter import Unsupported
from mindspore import MsDispatchMode, Tensor, bfloat16, nn, ops

#: Operators of the forward pass that multiply.
MATMULS = ("MatMul", "BatchMatMul", "MatMulExt", "BatchMatMulExt", "Dense")
TRANSPOSED_CONVOLUTIONS = ("Conv2DTranspose", "Conv3DTranspose", "Conv2DBackpropInput")
OPERATORS = (*MATMULS, "Conv2D", "Conv3D", *TRANSPOSED_CONVOLUTIONS, "LSTM")
_NO_FLOAT64 = "no float64 run to compare with"


def refuse_halves() -> None:
    """Raise :class:`Unsupported`, with MindSpore's words, where it has no matmul in half precision.

    In float16 one runs, between conversions to float32 and back: its kernels have none either."""
    half = Tensor(np.ones((2, 2), np.float32)).astype(bfloat16)
    try:
        ops.matmul(half, half).asnumpy()
    except (TypeError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise Unsupported(f"bfloat16: {text.partition(' The supported')[0]}") from error
    raise Unsupported("this adapter has no mixed precision, though MindSpore multiplies bfloat16")


class Watch(MsDispatchMode):
    """Counts of the operators that PyNative dispatches in its context. ``matmuls``: by the dtype of
    their operands; ``results``: those that return floating-point numbers, by dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.matmuls: Dict[str, int] = Counter()
        self.results: Dict[str, int] = Counter()
        self.multiply_adds = 0
        self.has_lstm = False

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for entry in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(entry, Tensor) and entry.is_floating_point():
                self.results[str(entry.dtype).lower()] += 1
        if func.name in OPERATORS:
            # an operator that is an object comes before its own name and the operands
            operands = args[2] if len(args) == 3 and isinstance(args[1], str) else args
            self.matmuls[str(operands[0].dtype).lower()] += 1
            self.multiply_adds += _multiply_adds(func.name, operands, result)
            self.has_lstm |= func.name == "LSTM"
        return result


def watched(network: nn.Cell, forward: Callable[[], Any]) -> Watch:
    """Watch one ``forward()``. Running statistics are left as they were."""
    statistics = [
        parameter for parameter in network.get_parameters() if not parameter.requires_grad
    ]
    before = [statistic.asnumpy().copy() for statistic in statistics]
    with Watch() as watch:
        forward()
    for statistic, array in zip(statistics, before):
        ops.assign(statistic, Tensor(array))
    return watch


@contextlib.contextmanager
def refusing_float64() -> Iterator[None]:
    """Raise :class:`Unsupported`, with MindSpore's words, for an operation without float64."""
    try:
        yield
    except (TypeError, RuntimeError) as error:
        text = " ".join(str(error).split()).partition(" ----")[0].rstrip(".")
        if "float64" not in text.lower():
            raise
        raise Unsupported(f"{_NO_FLOAT64}: {text}") from error


def _multiply_adds(name: str, operands: Sequence[Any], result: Any) -> int:
    left, right = operands[:2]
    if name in TRANSPOSED_CONVOLUTIONS:
        return math.prod(left.shape) * math.prod(right.shape[1:])
    output = result[0] if isinstance(result, (tuple, list)) else result
    if name in ("Conv2D", "Conv3D"):
        summands = math.prod(right.shape[1:])
    elif name == "LSTM":  # four gates of what enters and of the step before, all steps in one
        summands = 4 * (left.shape[-1] + output.shape[-1])
    else:
        is_transposed = name != "Dense" and len(operands) > 2 and operands[2] is True
        summands = left.shape[-2 if is_transposed else -1]
    return math.prod(output.shape) * summands
