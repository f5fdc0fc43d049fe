"""Single operations, called eagerly, the results kept until the next."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import paddle
from harness.operations import (
    ADD,
    EXP,
    MATMUL,
    MULTIPLY,
    NEITHER,
    SCALAR,
    SCALE,
    TRIAD,
    Operation,
    Transposed,
)


def function_of(name: str, transposed: Transposed = NEITHER) -> Callable[..., Any]:
    """Return the framework's function for an operation of :mod:`harness.operations`."""
    first, second = transposed
    functions: Dict[str, Callable[..., Any]] = {
        MATMUL: lambda a, b: paddle.matmul(a, b, transpose_x=first, transpose_y=second),
        ADD: paddle.add,
        MULTIPLY: paddle.multiply,
        EXP: paddle.exp,
        SCALE: lambda c: paddle.scale(c, SCALAR),
        TRIAD: lambda b, c: paddle.add(b, paddle.scale(c, SCALAR)),
    }
    return functions[name]


def operation(name: str, arrays: Sequence[Any], transposed: Transposed, dtype: str) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`."""
    tensors = [paddle.to_tensor(array).astype(dtype) for array in arrays]
    function = function_of(name, transposed)
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.astype("float32").numpy(), held.dtype.name.lower())
