"""Dtypes of matmuls and convolutions, observed where PyNative dispatches them."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Dict

import numpy as np
from harness.adapter import Unsupported
from mindspore import MsDispatchMode, Tensor, bfloat16, nn, ops

#: Operators of the forward pass that multiply.
MATMULS = ("MatMul", "BatchMatMul", "MatMulExt", "BatchMatMulExt", "Dense", "Conv2D", "LSTM")


def refuse_halves() -> None:
    """Raise :class:`Unsupported`, with MindSpore's words, where it has no matmul in half precision.

    Float16 matmuls run, but between conversions to float32 and back, because there are no kernels
    for float16."""
    half = Tensor(np.ones((2, 2), np.float32)).astype(bfloat16)
    try:
        ops.matmul(half, half).asnumpy()
    except (TypeError, RuntimeError) as error:
        text = " ".join(str(error).split())
        raise Unsupported(f"bfloat16: {text.partition(' The supported')[0]}") from error
    raise Unsupported("this adapter has no mixed precision, though MindSpore multiplies bfloat16")


class Watch(MsDispatchMode):
    """Counts of the matmuls that PyNative dispatches in its context, by the dtype of their
    operands."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Dict[str, int] = Counter()

    def __ms_dispatch__(self, func: Any, args: Any, kwargs: Any = None) -> Any:
        if func.name in MATMULS:
            # for an operator that is an object, object and name precede the operands
            operands = args[2] if len(args) == 3 and isinstance(args[1], str) else args
            self.counts[str(operands[0].dtype).lower()] += 1
        return func(*args, **(kwargs or {}))


def watched(network: nn.Cell, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()``. Running statistics are left as they were."""
    statistics = [
        parameter for parameter in network.get_parameters() if not parameter.requires_grad
    ]
    before = [statistic.asnumpy().copy() for statistic in statistics]
    with Watch() as watch:
        forward()
    for statistic, array in zip(statistics, before):
        ops.assign(statistic, Tensor(array))
    return dict(watch.counts)
