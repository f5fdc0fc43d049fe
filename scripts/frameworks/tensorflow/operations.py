"""Single operations, called eagerly, the results kept until the next."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import tensorflow as tf
from harness.operations import ADD, EXP, MATMUL, SCALAR, SCALE, TRIAD, Operation, Transposed


def operation(name: str, arrays: Sequence[Any], transposed: Transposed, dtype: str) -> Operation:
    """See :class:`harness.operations.SingleOperations`."""
    tensors = [tf.cast(tf.constant(array), dtype) for array in arrays]
    first, second = transposed
    functions: Dict[str, Callable[..., Any]] = {
        MATMUL: lambda a, b: tf.linalg.matmul(a, b, transpose_a=first, transpose_b=second),
        ADD: tf.add,
        EXP: tf.exp,
        SCALE: lambda c: tf.multiply(c, SCALAR),
        TRIAD: lambda b, c: tf.add(b, tf.multiply(c, SCALAR)),
    }
    function = functions[name]
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.numpy().astype("float32"), held.dtype.name)
