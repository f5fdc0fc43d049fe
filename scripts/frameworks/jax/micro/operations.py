"""Single operations, each compiled alone: JAX has no other way to run one."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from harness.operations import MATMUL, Operation, Transposed, functions

FUNCTIONS = functions(jnp.matmul, jnp.add, jnp.multiply, jnp.exp)


class Chained(NamedTuple):
    """Program that is enqueued by ``run`` after the one before it; ``held``: returns the last
    result."""

    run: Callable[[], None]
    held: Callable[[], Any]


def chained(
    compute: Callable[..., Any],
    operands: Sequence[Any],
    device: jax.Device,
    note: Callable[[Any], None],
) -> Chained:
    """Return ``compute(*operands)``, compiled. Each program gets the previous result for nothing
    but its memory: JAX would start independent programs at once. ``note`` is called with each
    result."""

    def behind(before: Any, *arguments: Any) -> Any:
        return compute(*arguments)

    shapes = jax.eval_shape(behind, None, *operands)
    held = jax.tree.map(
        lambda shape: jax.device_put(np.zeros(shape.shape, shape.dtype), device), shapes
    )
    jitted = jax.jit(behind, donate_argnums=(0,), keep_unused=True)
    program = jitted.trace(held, *operands).lower().compile()

    def run() -> None:
        nonlocal held
        held = program(held, *operands)
        note(held)

    return Chained(run, lambda: held)


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`. ``note`` is
    called with each result."""
    tensors = [jax.device_put(array.astype(dtype), device) for array in arrays]

    def compute(*operands: Any) -> Any:
        if name == MATMUL:
            swapped = zip(operands, transposed, strict=True)
            operands = tuple(array.swapaxes(-1, -2) if swap else array for array, swap in swapped)
        return FUNCTIONS[name](*operands)

    chain = chained(compute, tensors, device, note)
    return Operation(
        chain.run, lambda: np.array(chain.held()).astype(np.float32), str(chain.held().dtype)
    )
