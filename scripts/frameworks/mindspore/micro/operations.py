"""Single operations, called eagerly; each result is kept until the next."""

from __future__ import annotations

from typing import Any, Dict, Sequence

from harness.operations import (
    ADD,
    EXP,
    MATMUL,
    MULTIPLY,
    SCALAR,
    SCALE,
    TRIAD,
    Operation,
    Transposed,
)
from mindspore import Tensor, ops

FUNCTIONS: Dict[str, Any] = {
    ADD: ops.add,
    MULTIPLY: ops.mul,
    EXP: ops.exp,
    SCALE: lambda c: ops.mul(c, SCALAR),
    TRIAD: lambda b, c: ops.add(b, ops.mul(c, SCALAR)),
}


def operation(name: str, arrays: Sequence[Any], transposed: Transposed) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`."""
    tensors = [Tensor(array) for array in arrays]
    if name == MATMUL:
        kind = ops.MatMul if arrays[0].ndim == 2 else ops.BatchMatMul
        function: Any = kind(transpose_a=transposed[0], transpose_b=transposed[1])
    else:
        function = FUNCTIONS[name]
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.asnumpy(), str(held.dtype).lower())
