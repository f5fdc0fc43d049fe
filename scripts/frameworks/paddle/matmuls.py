"""Matmuls and convolutions of a forward pass: their dtypes and their multiply-adds."""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any, Callable, Iterator, List

import paddle
from harness.adapter import ExecutedMatmul
from paddle import nn
from paddle.amp import debugging

# Paddle's names: in the statistics of the dynamic graph, and in programs.
WATCHED = {
    "conv2d": 1,
    "depthwise_conv2d": 1,
    "matmul_v2": 1,
    "linear_v2": 1,  # of CUDA builds
    "flash_attn": 2,
    "memory_efficient_attention": 2,
    "rnn": 1,  # all matmuls of all recurrent layers
}
IN_PROGRAMS = {
    "pd_op.conv2d": 1,
    "pd_op.depthwise_conv2d": 1,
    "pd_op.matmul": 1,
    "pd_op.linear_v2": 1,
    "pd_op.flash_attn": 2,
    "pd_op.memory_efficient_attention": 2,
    "pd_op.rnn": 1,
}
COLUMNS = ("float16", "bfloat16", "float32", "other")  # of a line of the statistics


@contextlib.contextmanager
def _unchanged(model: nn.Layer) -> Iterator[None]:
    """Restore running statistics and the random state when the context ends."""
    fixed = [tensor for tensor in model.parameters() if tensor.stop_gradient]
    kept = [tensor.clone() for tensor in fixed]
    state = paddle.get_rng_state()
    yield
    with paddle.no_grad():
        for tensor, before in zip(fixed, kept):
            tensor.copy_(before, True)
    paddle.set_rng_state(state)


def watch(model: nn.Layer, forward: Callable[[], Any]) -> List[ExecutedMatmul]:
    """Return the matmuls of one ``forward()`` in the dynamic graph, by dtype alone: those that
    Paddle's statistics of low precision count."""
    with paddle.no_grad(), _unchanged(model), contextlib.redirect_stdout(io.StringIO()):
        debugging.enable_operator_stats_collection()  # it prints a table
        forward()
        calls = paddle.base.core.get_low_precision_op_list()
        debugging.disable_operator_stats_collection()
    matmuls: List[ExecutedMatmul] = []
    for name, each in WATCHED.items():
        counts = str(calls.get(name, "0,0,0,0")).split(",")
        for dtype, count in zip(COLUMNS, counts):
            matmuls += each * int(count) * [ExecutedMatmul(dtype)]
    return matmuls


def in_program(program: Any) -> List[ExecutedMatmul]:
    """Return the matmuls of a program by the dtype and the shapes of their operands."""
    matmuls: List[ExecutedMatmul] = []
    for operation in program.global_block().ops:
        each = IN_PROGRAMS.get(operation.name())
        if each:
            dtype = str(operation.operands_source()[0].dtype).rpartition(".")[2].lower()
            matmuls += each * [ExecutedMatmul(dtype, _multiply_adds(operation))]
    return matmuls


def _multiply_adds(operation: Any) -> int:
    """Return the multiply-adds of ``operation``."""
    if operation.name() == "pd_op.rnn":
        return _recurrent_multiply_adds(operation)
    first, second = (tuple(value.shape) for value in operation.operands_source()[:2])
    values = math.prod(tuple(operation.results()[0].shape))
    if operation.name().endswith("conv2d"):  # the filter is (out, in of a group, height, width)
        return values * math.prod(second[1:])
    if operation.name() == "pd_op.matmul":
        return values * first[-2 if operation.attrs()["transpose_x"] else -1]
    if operation.name() == "pd_op.linear_v2":
        return values * first[-1]
    # attention, (batch, sequence, heads, head size): queries by keys, probabilities by values
    return math.prod(first) * second[1]


def _recurrent_multiply_adds(operation: Any) -> int:
    """Return the multiply-adds of each row of each step by each matrix of all layers, in which
    gates stand side by side."""
    inputs, _, weights = operation.operands_source()[:3]
    length, rows, _ = inputs.shape
    shapes = [tuple(operand.shape) for operand in weights.get_defining_op().operands_source()]
    return length * rows * sum(math.prod(shape) for shape in shapes if len(shape) == 2)
