"""The collectives of JAX's programs, each compiled alone: it has none outside a program."""

from __future__ import annotations

from typing import Any, Callable, Dict

import jax
import jax.numpy as jnp
import numpy as np
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    CollectiveOperation,
    MatmulCollective,
)

from ..parallel.data_parallel import AXIS, Ranks, local

LACKING = "jax.lax has psum, all_gather, psum_scatter, all_to_all and ppermute"


def has(operation: str) -> bool:
    """Return whether JAX has a primitive for the operation."""
    return operation in _functions(2)


def _functions(ranks: int) -> Dict[str, Callable[[jax.Array], jax.Array]]:
    ring = [(rank, (rank + 1) % ranks) for rank in range(ranks)]
    return {
        ALL_REDUCE: lambda part: jax.lax.psum(part, AXIS),
        ALL_GATHER: lambda part: jax.lax.all_gather(part, AXIS, tiled=True),
        REDUCE_SCATTER: lambda part: jax.lax.psum_scatter(part, AXIS, tiled=True),
        ALL_TO_ALL: lambda part: jax.lax.all_to_all(part, AXIS, 0, 0, tiled=True),
        SEND_RECEIVE: lambda part: jax.lax.ppermute(part, AXIS, ring),
    }


def collective(
    operation: str,
    array: Any,
    dtype: str,
    device: jax.Device,
    ranks: Ranks,
    note: Callable[[Any], None],
) -> CollectiveOperation:
    """Prepare a collective; see :class:`harness.communication.Communication`. ``note`` is called
    with each result.

    An all-reduce sums the previous result; other programs take it only to start after it."""
    contribution = jax.device_put(array.astype(dtype), device)
    function = _functions(ranks.mesh.size)[operation]
    grows = operation == ALL_REDUCE

    def compute(stacked: jax.Array, before: jax.Array) -> jax.Array:
        return function(before[0] if grows else stacked[0])[None]

    program = ranks.program(compute)
    stacked = ranks.stacked(contribution)
    length = {
        ALL_GATHER: len(contribution) * ranks.mesh.size,
        REDUCE_SCATTER: len(contribution) // ranks.mesh.size,
    }
    count = length.get(operation, len(contribution))
    held = stacked

    def reset() -> None:
        nonlocal held
        held = (
            stacked
            if grows
            else ranks.stacked(jax.device_put(np.zeros(count, contribution.dtype), device))
        )

    def run() -> None:
        nonlocal held
        held = program(stacked, held)
        note(held)

    return CollectiveOperation(reset, run, lambda: np.array(local(held)[0]).astype(np.float32))


def sharded_matmul(
    left: Any,
    right: Any,
    operation: str,
    dtype: Any,
    device: jax.Device,
    ranks: Ranks,
    note: Callable[[Any], None],
) -> MatmulCollective:
    """Prepare a matmul and the collective of its parts; see
    :class:`harness.communication.ShardedMatmuls`. ``note`` is called with each result.

    Each program takes its own previous result, so that it starts after that."""
    a, b = (ranks.stacked(jax.device_put(array.astype(dtype), device)) for array in (left, right))

    def multiplied(a: jax.Array, b: jax.Array, before: jax.Array) -> jax.Array:
        return jnp.matmul(a[0], b[0])[None]

    def exchanged(part: jax.Array, before: jax.Array) -> jax.Array:
        if operation == ALL_REDUCE:
            return jax.lax.psum(part[0], AXIS)[None]
        return jax.lax.all_gather(part[0], AXIS, axis=1, tiled=True)[None]

    def together(a: jax.Array, b: jax.Array, before: jax.Array) -> jax.Array:
        return exchanged(multiplied(a, b, before), before)

    computing, exchanging = ranks.program(multiplied), ranks.program(exchanged)
    both_of_them = ranks.program(together)

    def zeros(columns: int) -> jax.Array:
        empty = np.zeros((left.shape[0], columns), a.dtype)
        return ranks.stacked(jax.device_put(empty, device))

    columns = right.shape[1]
    part = computing(a, b, zeros(columns))
    whole = zeros(columns if operation == ALL_REDUCE else columns * ranks.mesh.size)

    def matmul() -> None:
        nonlocal part
        part = computing(a, b, part)
        note(part)

    def communicate() -> None:
        nonlocal whole
        whole = exchanging(part, whole)
        note(whole)

    def both() -> None:
        nonlocal whole
        whole = both_of_them(a, b, whole)
        note(whole)

    def result() -> Any:
        return np.array(local(whole)[0]).astype(np.float32)

    return MatmulCollective(matmul, communicate, both, result, str(part.dtype))
