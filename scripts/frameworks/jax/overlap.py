"""Products beside an all-reduce in one compiled program, as a training step has them."""

from __future__ import annotations

from typing import Any, Callable, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from harness.overlapping import Overlapped

from .parallel import AXIS, Ranks, local


def overlapped(
    left: Any,
    right: Any,
    products: int,
    message: Any,
    dtype: Any,
    device: jax.Device,
    ranks: Ranks,
    note: Callable[[Any], None],
) -> Overlapped:
    """See :class:`harness.overlapping.Overlapping`. ``note`` is told each result. A program takes
    what the one before gave, and so begins behind it."""

    def stacked(array: Any, dtype: Any) -> jax.Array:
        return ranks.stacked(jax.device_put(array.astype(dtype), device))

    a, b, own = stacked(left, dtype), stacked(right, dtype), stacked(message, np.float32)
    product = stacked(np.zeros((left.shape[0], right.shape[1])), dtype)
    held = own

    def multiplied(a: jax.Array, b: jax.Array, before: jax.Array) -> jax.Array:
        found = before[0]
        for _ in range(products):
            found = jnp.matmul(_behind(a[0], found), b[0])
        return found[None]

    def summed(value: jax.Array) -> jax.Array:
        return jax.lax.psum(value[0], AXIS)[None]

    def together(
        a: jax.Array, b: jax.Array, before: jax.Array, value: jax.Array
    ) -> Tuple[jax.Array, jax.Array]:
        return multiplied(a, b, before), summed(value)

    computing, communicating = ranks.program(multiplied), ranks.program(summed)
    all_of_it = ranks.program(together)

    def compute() -> None:
        nonlocal product
        product = computing(a, b, product)
        note(product)

    def communicate() -> None:
        nonlocal held
        held = communicating(held)
        note(held)

    def both() -> None:
        nonlocal held, product
        product, held = all_of_it(a, b, product, held)
        note((product, held))

    def reset() -> None:
        nonlocal held
        held = own

    def result(array: jax.Array) -> Any:
        return np.array(local(array)[0]).astype(np.float32)

    return Overlapped(
        compute, communicate, both, reset,
        lambda: result(product), lambda: result(held), str(product.dtype),
    )  # fmt: skip


def _behind(operand: jax.Array, before: jax.Array) -> jax.Array:
    """``operand``, which is there when ``before`` is: a number of it is taken from there where that
    is none. XLA computes a product once, however often a program has it, and begins those that do
    not depend on each other at once."""
    last = before[0, 0]
    return operand.at[0, 0].set(jnp.where(jnp.isnan(last), last, operand[0, 0]))
