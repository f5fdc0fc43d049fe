"""Single operations: a graph of one, whose result is written to a variable on the device."""

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

from .. import variables


def function_of(name: str, transposed: Transposed = NEITHER) -> Callable[..., Any]:
    """Return the framework's function for an operation of :mod:`harness.operations`."""
    first, second = transposed
    functions: Dict[str, Callable[..., Any]] = {
        MATMUL: lambda a, b: tf.matmul(a, b, transpose_a=first, transpose_b=second),
        ADD: tf.add,
        MULTIPLY: tf.multiply,
        EXP: tf.exp,
        SCALE: lambda c: tf.multiply(c, SCALAR),
        TRIAD: lambda b, c: tf.add(b, tf.multiply(c, SCALAR)),
    }
    return functions[name]


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: str,
    session_of: Callable[[tf.Graph], tf.Session],
) -> Operation:
    """See :class:`harness.operations.SingleOperations`. ``arrays`` have the dtype of the
    operation."""
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
