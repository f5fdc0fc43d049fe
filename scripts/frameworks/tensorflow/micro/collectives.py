"""The collectives of TensorFlow's distribution strategies."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf
from harness.communication import ALL_GATHER, ALL_REDUCE, CollectiveOperation, MatmulCollective

from ..steps import traced

LACKING = "a replica of a distribution strategy has all_reduce and all_gather"
OPERATIONS = (ALL_REDUCE, ALL_GATHER)


def program(
    strategy: tf.distribute.Strategy, replica: Callable[..., Any], *arguments: tf.Tensor
) -> Any:
    """Return the traced ``replica``, which runs in each rank of the ``strategy``."""
    function = traced(lambda *arguments: strategy.run(replica, args=arguments))
    return function.get_concrete_function(*arguments)


def exchanged(operation: str, value: tf.Tensor, axis: int = 0) -> tf.Tensor:
    """Return the result of one of OPERATIONS, in a replica. ``axis``: axis along which parts are
    concatenated."""
    context = tf.distribute.get_replica_context()
    # An argument has no device, and the strategy looks for it there.
    value = tf.identity(value)
    if operation == ALL_REDUCE:
        return context.all_reduce(tf.distribute.ReduceOp.SUM, value)
    return context.all_gather(value, axis=axis)


def collective(
    operation: str, array: Any, dtype: str, strategy: tf.distribute.Strategy
) -> CollectiveOperation:
    """Prepare a collective; see :class:`harness.communication.Communication`."""
    contribution = tf.cast(tf.constant(array), dtype)
    exchanging = program(strategy, lambda value: exchanged(operation, value), contribution)
    held = contribution

    def reset() -> None:
        nonlocal held
        held = contribution

    def run() -> None:
        nonlocal held
        held = exchanging(held if operation == ALL_REDUCE else contribution)

    return CollectiveOperation(reset, run, lambda: held.numpy().astype("float32"))


def sharded_matmul(
    left: Any, right: Any, operation: str, dtype: str, strategy: tf.distribute.Strategy
) -> MatmulCollective:
    """Prepare a matmul and the collective of its parts; see
    :class:`harness.communication.ShardedMatmuls`."""
    a, b = (tf.cast(tf.constant(array), dtype) for array in (left, right))
    computing = program(strategy, tf.matmul, a, b)
    part = computing(a, b)
    exchanging = program(strategy, lambda value: exchanged(operation, value, 1), part)
    together = program(strategy, lambda a, b: exchanged(operation, tf.matmul(a, b), 1), a, b)
    whole = part

    def matmul() -> None:
        nonlocal part
        part = computing(a, b)

    def communicate() -> None:
        nonlocal whole
        whole = exchanging(part)

    def both() -> None:
        nonlocal whole
        whole = together(a, b)

    return MatmulCollective(
        matmul, communicate, both, lambda: whole.numpy().astype("float32"), part.dtype.name
    )
