"""Matmuls and convolutions: in which dtype they run, and how many multiply-adds they are.

In eager mode they are watched as they happen, in their modules; in a graph they are read
from the job that OneFlow compiled. (``oneflow.profiler`` shows no dtype, and on a machine without
a GPU it ends the process.)
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, List

import oneflow
from harness.adapter import ExecutedMatmul
from oneflow import Tensor, nn
from oneflow.core.common import data_type_pb2

DTYPES = {"kFloat": "float32", "kFloat16": "float16", "kBFloat16": "bfloat16"}

# operators of a compiled job, those that only the backward pass has in the second line
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


def watched(model: nn.Module, forward: Callable[[], Any]) -> List[ExecutedMatmul]:
    """Return the matmuls of one ``forward()`` in eager mode, by what their modules put out. Buffers
    of ``model`` (running statistics) and the random state are left as they were."""
    matmuls: List[ExecutedMatmul] = []

    def note(module: nn.Module, original: Callable[..., Any], *inputs: Tensor) -> Any:
        result = original(*inputs)
        output = result[0] if isinstance(module, nn.LSTM) else result
        if isinstance(module, nn.Conv2d):
            summands = module.weight.numel() // module.weight.shape[0]
        elif isinstance(module, nn.LSTM):
            # of all layers: every row of every step by every matrix, whose gates stand side by side
            matrices = sum(array.numel() for array in module.parameters() if array.dim() == 2)
            summands = matrices // output.shape[-1]
        else:
            summands = inputs[0].shape[-1]
        dtype = str(output.dtype).replace("oneflow.", "")
        matmuls.append(ExecutedMatmul(dtype, output.numel() * summands))
        return result

    kinds = (nn.Conv2d, nn.Linear, nn.LSTM, Multiplication)
    noted = [module for module in model.modules() if isinstance(module, kinds)]
    kept = [buffer.clone() for buffer in model.buffers()]
    state = oneflow.get_rng_state()
    for module in noted:  # no hooks: OneFlow 0.9.0 cannot remove them again
        module.forward = functools.partial(note, module, module.forward)  # type: ignore[method-assign]
    try:
        with oneflow.no_grad():
            forward()
            for buffer, before in zip(model.buffers(), kept):
                buffer.copy_(before)
    finally:
        for module in noted:
            del module.forward
    oneflow.set_rng_state(state)
    return matmuls


def compiled(graph: nn.Graph, ranks: int) -> List[ExecutedMatmul]:
    """Return the matmuls in the job that OneFlow compiled from ``graph``.

    A job has the tensors of all ``ranks`` in one, split along the batch; multiply-adds
    are those of one rank, and hold for a graph without a backward pass."""
    job = graph._compiled_graph_proto
    matmuls: List[ExecutedMatmul] = []
    for operator in (entry.user_conf for entry in job.net.op):
        if operator.op_type_name not in OPERATORS:
            continue
        operands = {name: _tensor(job, names.s[0]) for name, names in operator.input.items()}
        (out,) = (_tensor(job, names.s[0]) for names in operator.output.values())
        rows, *others = out.shape.dim
        if operator.op_type_name == "conv2d":
            summands = math.prod(operands["weight"].shape.dim) // operands["weight"].shape.dim[0]
        elif "a" in operands:
            transposed = operator.attr["transpose_a"].at_bool
            summands = operands["a"].shape.dim[-2 if transposed else -1]
        else:
            summands = 0  # of a convolution's backward pass
        dtype = data_type_pb2.DataType.Name(out.data_type)
        values = rows // ranks * math.prod(others)
        matmuls.append(ExecutedMatmul(DTYPES.get(dtype, dtype), values * summands))
    return matmuls


def _tensor(job: Any, name: str) -> Any:
    return job.helper.lbn2logical_blob_desc[name]
