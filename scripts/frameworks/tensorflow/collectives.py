"""The collectives of TensorFlow's distribution strategies."""

from __future__ import annotations

from typing import Any, Callable, Dict

import tensorflow as tf
from harness.communication import ALL_GATHER, ALL_REDUCE, Collective

from .steps import traced

LACKING = "a replica of a distribution strategy has all_reduce and all_gather"
OPERATIONS = (ALL_REDUCE, ALL_GATHER)


def collective(
    operation: str, array: Any, dtype: str, strategy: tf.distribute.Strategy
) -> Collective:
    """See :class:`harness.communication.Communication`."""
    own = tf.cast(tf.constant(array), dtype)

    def replica(value: tf.Tensor) -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        # An argument has no device, and the strategy looks for it there.
        functions: Dict[str, Callable[[tf.Tensor], tf.Tensor]] = {
            ALL_REDUCE: lambda part: context.all_reduce(tf.distribute.ReduceOp.SUM, part),
            ALL_GATHER: lambda part: context.all_gather(part, axis=0),
        }
        return functions[operation](tf.identity(value))

    traced_once = traced(lambda value: strategy.run(replica, args=(value,)))
    program = traced_once.get_concrete_function(own)
    held = own

    def reset() -> None:
        nonlocal held
        held = own

    def run() -> None:
        nonlocal held
        held = program(held if operation == ALL_REDUCE else own)

    return Collective(reset, run, lambda: held.numpy().astype("float32"))
