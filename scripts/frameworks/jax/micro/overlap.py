"""Computation beside an all-reduce in one compiled program, as in a training step."""

from __future__ import annotations

from typing import Any, Callable, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
from harness.overlapping import Overlapped

from ..parallel.data_parallel import AXIS, Ranks, local
from .operations import FUNCTIONS


def overlapped(
    name: str,
    arrays: Sequence[Any],
    count: int,
    message: Any,
    dtype: Any,
    device: jax.Device,
    ranks: Ranks,
    note: Callable[[Any], None],
) -> Overlapped:
    """Prepare computation and all-reduce; see :class:`harness.overlapping.Overlapping`.

    ``note`` is called with each result. A program takes the result of the one before, and so
    begins after it."""
    function = FUNCTIONS[name]

    def stacked(array: Any, dtype: Any) -> jax.Array:
        return ranks.stacked(jax.device_put(array.astype(dtype), device))

    (a, b), buffer = (stacked(array, dtype) for array in arrays), stacked(message, np.float32)
    computed = stacked(np.zeros(jax.eval_shape(function, *arrays).shape), dtype)
    held = buffer

    def repeated(a: jax.Array, b: jax.Array, before: jax.Array) -> jax.Array:
        # A loop keeps each result whole: XLA would fuse unrolled element-wise operations into one.
        return jax.lax.fori_loop(
            0, count, lambda _, result: function(_behind(a[0], result), b[0]), before[0]
        )[None]

    def summed(value: jax.Array) -> jax.Array:
        return jax.lax.psum(value[0], AXIS)[None]

    def together(
        a: jax.Array, b: jax.Array, before: jax.Array, value: jax.Array
    ) -> Tuple[jax.Array, jax.Array]:
        return repeated(a, b, before), summed(value)

    computing, communicating = ranks.program(repeated), ranks.program(summed)
    all_of_it = ranks.program(together)

    def compute() -> None:
        nonlocal computed
        computed = computing(a, b, computed)
        note(computed)

    def communicate() -> None:
        nonlocal held
        held = communicating(held)
        note(held)

    def both() -> None:
        nonlocal held, computed
        computed, held = all_of_it(a, b, computed, held)
        note((computed, held))

    def reset() -> None:
        nonlocal held
        held = buffer

    def result(array: jax.Array) -> Any:
        return np.array(local(array)[0]).astype(np.float32)

    return Overlapped(
        compute, communicate, both, reset,
        lambda: result(computed), lambda: result(held), str(computed.dtype),
    )  # fmt: skip


def _behind(operand: jax.Array, before: jax.Array) -> jax.Array:
    """Return ``operand``, available only once ``before`` is: its first element depends on that.

    XLA computes equal operations once, and begins those that do not depend on each other at
    once."""
    last = before[0, 0]
    return operand.at[0, 0].set(jnp.where(jnp.isnan(last), last, operand[0, 0]))
