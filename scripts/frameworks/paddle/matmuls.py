"""Matmuls and convolutions of a forward pass, by their dtypes."""

from __future__ import annotations

import contextlib
import io
from collections import Counter
from typing import Any, Callable, Dict, Iterator

import paddle
from paddle import nn
from paddle.amp import debugging

#: Number of matmuls of each operator, by Paddle's names in the statistics of the dynamic graph and
#: in programs.
MATMULS = {
    "conv2d": 1,
    "depthwise_conv2d": 1,
    "matmul": 1,
    "matmul_v2": 1,
    "linear_v2": 1,  # in CUDA builds
    "flash_attn": 2,
    "memory_efficient_attention": 2,
    "rnn": 1,  # Paddle counts all matmuls of all recurrent layers as one
}
COLUMNS = ("float16", "bfloat16", "float32", "other")  # columns of a line of the statistics


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


def watch(model: nn.Layer, forward: Callable[[], Any]) -> Dict[str, int]:
    """Count the matmuls of one ``forward()`` in the dynamic graph, by Paddle's statistics of low
    precision."""
    with paddle.no_grad(), _unchanged(model), contextlib.redirect_stdout(io.StringIO()):
        debugging.enable_operator_stats_collection()  # hide the table that Paddle prints
        forward()
        calls = paddle.base.core.get_low_precision_op_list()
        debugging.disable_operator_stats_collection()
    counts: Dict[str, int] = Counter()
    for name, each in MATMULS.items():
        for dtype, count in zip(COLUMNS, str(calls.get(name, "0,0,0,0")).split(",")):
            counts[dtype] += each * int(count)
    return {dtype: count for dtype, count in counts.items() if count}


def in_program(program: Any) -> Dict[str, int]:
    """Count the matmuls of a program by the dtype of their operands."""
    counts: Dict[str, int] = Counter()
    for operation in program.global_block().ops:
        each = MATMULS.get(operation.name().replace("pd_op.", ""))
        if each:
            dtype = str(operation.operands_source()[0].dtype).rpartition(".")[2].lower()
            counts[dtype] += each
    return dict(counts)
