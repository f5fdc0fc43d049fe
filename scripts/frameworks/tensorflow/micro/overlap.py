"""Computation beside an all-reduce in one traced function, as in a training step."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import tensorflow as tf
from harness.communication import ALL_REDUCE
from harness.overlapping import Overlapped

from .collectives import exchanged, program
from .operations import function_of


def overlapped(
    name: str,
    arrays: Sequence[Any],
    count: int,
    message: Any,
    dtype: str,
    strategy: tf.distribute.Strategy,
) -> Overlapped:
    """Prepare computation and all-reduce; see :class:`harness.overlapping.Overlapping`."""
    function = function_of(name)
    a, b = (tf.cast(tf.constant(array), dtype) for array in arrays)
    buffer = tf.constant(message)

    def repeated(a: tf.Tensor, b: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
        """Return the last result, and a sum that needs all: TensorFlow drops a result that nothing
        needs, and computes equal ones that do not wait for each other only once."""
        result = function(a, b)
        each = [result[0, 0]]
        for _ in range(count - 1):
            with tf.control_dependencies([result]):
                result = function(a, b)
            each.append(result[0, 0])
        return result, tf.add_n(each)

    def summed(value: tf.Tensor) -> tf.Tensor:
        return exchanged(ALL_REDUCE, value)

    computing = program(strategy, repeated, a, b)
    communicating = program(strategy, summed, buffer)
    together = program(strategy, lambda value, a, b: (summed(value), repeated(a, b)), buffer, a, b)
    held, (computed, _) = buffer, computing(a, b)

    def compute() -> None:
        nonlocal computed
        computed, _ = computing(a, b)

    def communicate() -> None:
        nonlocal held
        held = communicating(held)

    def both() -> None:
        nonlocal held, computed
        held, (computed, _) = together(held, a, b)

    def reset() -> None:
        nonlocal held
        held = buffer

    return Overlapped(
        compute, communicate, both, reset,
        lambda: computed.numpy().astype("float32"), lambda: held.numpy(), computed.dtype.name,
    )  # fmt: skip
