"""The collectives of JAX's programs, each compiled alone: it has none outside a program."""

from __future__ import annotations

from typing import Any, Callable, Dict

import jax
import numpy as np
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    Collective,
)

from .parallel import AXIS, Ranks, local

LACKING = "jax.lax has psum, all_gather, psum_scatter, all_to_all and ppermute"


def has(operation: str) -> bool:
    """Whether there is a primitive for it."""
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
) -> Collective:
    """See :class:`harness.communication.Communication`. ``note`` is told each result. An all-reduce
    takes what the one before gave; the others get it for nothing but to begin behind it."""
    own = jax.device_put(array.astype(dtype), device)
    function = _functions(ranks.mesh.size)[operation]
    grows = operation == ALL_REDUCE

    def compute(stacked: jax.Array, before: jax.Array) -> jax.Array:
        return function(before[0] if grows else stacked[0])[None]

    program = ranks.program(compute)
    stacked = ranks.stacked(own)
    length = {ALL_GATHER: len(own) * ranks.mesh.size, REDUCE_SCATTER: len(own) // ranks.mesh.size}
    count = length.get(operation, len(own))
    held = stacked

    def reset() -> None:
        nonlocal held
        held = (
            stacked if grows else ranks.stacked(jax.device_put(np.zeros(count, own.dtype), device))
        )

    def run() -> None:
        nonlocal held
        held = program(stacked, held)
        note(held)

    return Collective(reset, run, lambda: np.array(local(held)[0]).astype(np.float32))
