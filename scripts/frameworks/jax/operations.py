"""Single operations, each compiled alone: JAX has no other way to run one."""

from __future__ import annotations

from typing import Any, Callable, Dict, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from harness.operations import ADD, EXP, MATMUL, Operation, Transposed

FUNCTIONS: Dict[str, Callable[..., Any]] = {MATMUL: jnp.matmul, ADD: jnp.add, EXP: jnp.exp}


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: jax.Device,
    dtype: Any,
    note: Callable[[Any], None],
) -> Operation:
    """See :class:`harness.operations.SingleOperations`. ``note`` is told each result. The
    one before is given to the program, which needs it for nothing but its memory: JAX would begin
    programs that do not depend on each other at once."""
    tensors = [jax.device_put(array.astype(dtype), device) for array in arrays]

    def compute(before: Any, *operands: Any) -> Any:
        if name == MATMUL:
            swapped = zip(operands, transposed, strict=True)
            operands = tuple(one.swapaxes(-1, -2) if swap else one for one, swap in swapped)
        return FUNCTIONS[name](*operands)

    shape = jax.eval_shape(compute, None, *tensors)
    held = jax.device_put(np.zeros(shape.shape, shape.dtype), device)
    jitted = jax.jit(compute, donate_argnums=(0,), keep_unused=True)
    program = jitted.trace(held, *tensors).lower().compile()

    def run() -> None:
        nonlocal held
        held = program(held, *tensors)
        note(held)

    return Operation(run, lambda: np.array(held).astype(np.float32), str(held.dtype))
