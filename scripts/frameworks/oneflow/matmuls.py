"""Matmuls and convolutions: in which dtype they run.

In eager mode they are watched as they happen, in their modules; in a graph they are read
from the job that OneFlow compiled. (``oneflow.profiler`` shows no dtype, and on a machine without
a GPU it ends the process.)
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any, Callable, Dict

import oneflow
from oneflow import Tensor, nn
from oneflow.core.common import data_type_pb2

DTYPES = {"kFloat": "float32", "kFloat16": "float16", "kBFloat16": "bfloat16"}

# operators of a compiled job; the second line has those of the backward pass only
OPERATORS = {
    *("conv2d", "matmul", "broadcast_matmul", "batch_matmul", "fused_matmul_bias"),
    *("conv_data_grad", "conv_filter_grad", "broadcast_matmul_grad_b"),
}


class Multiplication(nn.Module):
    """A matmul of two tensors as a module, so that it can be watched like the others."""

    def __init__(self, transpose_b: bool = False) -> None:
        super().__init__()
        self.transpose_b = transpose_b

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return oneflow._C.matmul(a, b, transpose_b=self.transpose_b)


def watched(model: nn.Module, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()`` in eager mode by the dtype of their modules' outputs.
    Buffers of ``model`` (running statistics) and the random state are left as they were."""
    counts: Dict[str, int] = Counter()

    def note(original: Callable[..., Any], *inputs: Tensor) -> Any:
        result = original(*inputs)
        output = result[0] if isinstance(result, tuple) else result  # LSTM: with states
        counts[str(output.dtype).replace("oneflow.", "")] += 1
        return result

    kinds = (nn.Conv2d, nn.Linear, nn.LSTM, Multiplication)
    noted = [module for module in model.modules() if isinstance(module, kinds)]
    kept = [buffer.clone() for buffer in model.buffers()]
    state = oneflow.get_rng_state()
    for module in noted:  # wraps forward, because OneFlow 0.9.0 cannot remove hooks
        module.forward = functools.partial(note, module.forward)  # type: ignore[method-assign]
    try:
        with oneflow.no_grad():
            forward()
            for buffer, before in zip(model.buffers(), kept):
                buffer.copy_(before)
    finally:
        for module in noted:
            del module.forward
    oneflow.set_rng_state(state)
    return dict(counts)


def compiled(graph: nn.Graph) -> Dict[str, int]:
    """Count the matmuls in the job that OneFlow compiled from ``graph``, by dtype."""
    job = graph._compiled_graph_proto
    counts: Dict[str, int] = Counter()
    for operator in (entry.user_conf for entry in job.net.op):
        if operator.op_type_name in OPERATORS:
            (names,) = operator.output.values()
            out = job.helper.lbn2logical_blob_desc[names.s[0]]
            dtype = data_type_pb2.DataType.Name(out.data_type)
            counts[DTYPES.get(dtype, dtype)] += 1
    return dict(counts)
