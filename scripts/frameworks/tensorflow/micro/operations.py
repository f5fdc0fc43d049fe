"""Single operations, called eagerly, the results kept until the next."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import tensorflow as tf
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
        MATMUL: lambda a, b: tf.linalg.matmul(a, b, transpose_a=first, transpose_b=second),
        ADD: tf.add,
        MULTIPLY: tf.multiply,
        EXP: tf.exp,
        SCALE: lambda c: tf.multiply(c, SCALAR),
        TRIAD: lambda b, c: tf.add(b, tf.multiply(c, SCALAR)),
    }
    return functions[name]


def operation(name: str, arrays: Sequence[Any], transposed: Transposed, dtype: str) -> Operation:
    """See :class:`harness.operations.SingleOperations`."""
    tensors = [tf.cast(tf.constant(array), dtype) for array in arrays]
    function = function_of(name, transposed)
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.numpy().astype("float32"), held.dtype.name)
