"""Products beside an all-reduce in one traced function, as a training step has them."""

from __future__ import annotations

from typing import Any, Tuple

import tensorflow as tf
from harness.communication import ALL_REDUCE
from harness.overlapping import Overlapped

from .collectives import exchanged, program


def overlapped(
    left: Any, right: Any, products: int, message: Any, dtype: str, strategy: tf.distribute.Strategy
) -> Overlapped:
    """See :class:`harness.overlapping.Overlapping`."""
    a, b = (tf.cast(tf.constant(array), dtype) for array in (left, right))
    own = tf.constant(message)

    def multiplied(a: tf.Tensor, b: tf.Tensor) -> Tuple[tf.Tensor, tf.Tensor]:
        """The last product, and a number of each: one that nobody needs would not be computed, and
        those that do not wait for each other only once."""
        product = tf.matmul(a, b)
        each = [product[0, 0]]
        for _ in range(products - 1):
            with tf.control_dependencies([product]):
                product = tf.matmul(a, b)
            each.append(product[0, 0])
        return product, tf.add_n(each)

    def summed(value: tf.Tensor) -> tf.Tensor:
        return exchanged(ALL_REDUCE, value)

    computing = program(strategy, multiplied, a, b)
    communicating = program(strategy, summed, own)
    together = program(strategy, lambda value, a, b: (summed(value), multiplied(a, b)), own, a, b)
    held, (product, _) = own, computing(a, b)

    def compute() -> None:
        nonlocal product
        product, _ = computing(a, b)

    def communicate() -> None:
        nonlocal held
        held = communicating(held)

    def both() -> None:
        nonlocal held, product
        held, (product, _) = together(held, a, b)

    def reset() -> None:
        nonlocal held
        held = own

    return Overlapped(
        compute, communicate, both, reset,
        lambda: product.numpy().astype("float32"), lambda: held.numpy(), product.dtype.name,
    )  # fmt: skip
