"""Single operations: a graph of one, whose result is written to a variable on the device."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import tensorflow as tf
from harness.operations import NEITHER, Operation, Transposed, functions

from .. import variables


def function_of(name: str, transposed: Transposed = NEITHER) -> Callable[..., Any]:
    """Return the framework's function for an operation of :mod:`harness.operations`."""
    first, second = transposed
    matmul = functools.partial(tf.matmul, transpose_a=first, transpose_b=second)
    return functions(matmul, tf.add, tf.multiply, tf.exp)[name]


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: str,
    session_of: Callable[[tf.Graph], tf.Session],
) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`. ``arrays`` have
    the dtype of the operation."""
    named = {f"operand_{number}": array for number, array in enumerate(arrays)}
    graph = tf.Graph()
    with graph.as_default(), tf.device(device):
        resident = variables.resident(named)
        computed = function_of(name, transposed)(*resident.values())
        held = variables.empty(computed.shape, computed.dtype)
        update = held.assign(computed, read_value=False)
        value = tf.cast(held.read_value(), tf.float32)
    session = session_of(graph)
    variables.load(resident, named, session)
    run = session.make_callable(update)
    run()
    return Operation(run, session.make_callable(value), computed.dtype.name)
