"""Products and convolutions of a forward pass: their dtypes and their multiply-adds."""

from __future__ import annotations

import contextlib
import io
import math
from collections import Counter
from typing import Any, Callable, Dict, Iterator, Tuple

import paddle
from paddle import nn
from paddle.amp import debugging

# Paddle's names: in the statistics of the dynamic graph, and in programs.
WATCHED = {"conv2d": 1, "matmul_v2": 1, "flash_attn": 2, "memory_efficient_attention": 2}
IN_PROGRAMS = {
    "pd_op.conv2d": 1,
    "pd_op.matmul": 1,
    "pd_op.flash_attn": 2,
    "pd_op.memory_efficient_attention": 2,
}
COLUMNS = ("float16", "bfloat16", "float32", "other")  # of a line of the statistics


@contextlib.contextmanager
def _unchanged(model: nn.Layer) -> Iterator[None]:
    """Running statistics and the random state are left as they were."""
    fixed = [tensor for tensor in model.parameters() if tensor.stop_gradient]
    kept = [tensor.clone() for tensor in fixed]
    state = paddle.get_rng_state()
    with paddle.no_grad():
        yield
        for tensor, before in zip(fixed, kept):
            tensor.copy_(before, True)
    paddle.set_rng_state(state)


def watch(model: nn.Layer, forward: Callable[[], Any]) -> Dict[str, int]:
    """Products of one ``forward()`` in the dynamic graph by dtype, as Paddle's own statistics of
    low precision count them."""
    with _unchanged(model), contextlib.redirect_stdout(io.StringIO()):  # it prints a table
        debugging.enable_operator_stats_collection()
        forward()
        calls = paddle.base.core.get_low_precision_op_list()
        debugging.disable_operator_stats_collection()
    dtypes: Counter[str] = Counter()
    for name, products in WATCHED.items():
        counts = str(calls.get(name, "0,0,0,0")).split(",")
        for dtype, count in zip(COLUMNS, counts):
            dtypes[dtype] += products * int(count)
    return {dtype: count for dtype, count in dtypes.items() if count}


def dtypes(program: Any) -> Dict[str, int]:
    """Products of a program by the dtype of their operands."""
    found: Counter[str] = Counter()
    for operation in _products(program):
        dtype = operation.operands_source()[0].dtype
        found[str(dtype).rpartition(".")[2].lower()] += IN_PROGRAMS[operation.name()]
    return dict(found)


def multiply_adds(program: Any) -> int:
    """Multiply-adds of the products of a program, from the shapes of their operands."""
    return sum(_multiply_adds(operation) for operation in _products(program))


def _products(program: Any) -> Iterator[Any]:
    return (
        operation for operation in program.global_block().ops if operation.name() in IN_PROGRAMS
    )


def _multiply_adds(operation: Any) -> int:
    first, second = (tuple(value.shape) for value in operation.operands_source()[:2])
    if operation.name() == "pd_op.conv2d":  # the filter is (out, in of a group, height, width)
        return _outputs(operation) * math.prod(second[1:])
    if operation.name() == "pd_op.matmul":
        return _outputs(operation) * first[-2 if operation.attrs()["transpose_x"] else -1]
    # attention, (batch, sequence, heads, head size): queries by keys, probabilities by values
    return 2 * math.prod(first) * second[1]


def _outputs(operation: Any) -> int:
    shape: Tuple[int, ...] = tuple(operation.results()[0].shape)
    return math.prod(shape)
