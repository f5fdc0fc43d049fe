"""Single operations, called eagerly, the results kept until the next."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import paddle
from harness.operations import ADD, EXP, MATMUL, SCALAR, SCALE, TRIAD, Operation, Transposed


def operation(name: str, arrays: Sequence[Any], transposed: Transposed, dtype: str) -> Operation:
    """See :class:`harness.operations.SingleOperations`."""
    tensors = [paddle.to_tensor(array).astype(dtype) for array in arrays]
    first, second = transposed
    functions: Dict[str, Callable[..., Any]] = {
        MATMUL: lambda a, b: paddle.matmul(a, b, transpose_x=first, transpose_y=second),
        ADD: paddle.add,
        EXP: paddle.exp,
        SCALE: lambda c: paddle.scale(c, SCALAR),
        TRIAD: lambda b, c: paddle.add(b, paddle.scale(c, SCALAR)),
    }
    function = functions[name]
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.astype("float32").numpy(), held.dtype.name.lower())
