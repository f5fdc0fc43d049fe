"""Single operations, called eagerly, the results kept until the next."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import tensorflow as tf
from harness.operations import NEITHER, Operation, Transposed, functions


def function_of(name: str, transposed: Transposed = NEITHER) -> Callable[..., Any]:
    """Return the framework's function for an operation of :mod:`harness.operations`."""
    first, second = transposed
    matmul = functools.partial(tf.linalg.matmul, transpose_a=first, transpose_b=second)
    return functions(matmul, tf.add, tf.multiply, tf.exp)[name]


def operation(name: str, arrays: Sequence[Any], transposed: Transposed, dtype: str) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`."""
    tensors = [tf.cast(tf.constant(array), dtype) for array in arrays]
    function = function_of(name, transposed)
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.numpy().astype("float32"), held.dtype.name)
