"""Single operations, called eagerly; each result is kept until the next."""

from __future__ import annotations

from typing import Any, Dict, Sequence

import oneflow
from harness.operations import (
    ADD,
    EXP,
    MATMUL,
    MULTIPLY,
    SCALAR,
    SCALE,
    TRIAD,
    Operation,
    Transposed,
)

FUNCTIONS: Dict[str, Any] = {
    MATMUL: oneflow.matmul,
    ADD: oneflow.add,
    MULTIPLY: oneflow.mul,
    EXP: oneflow.exp,
    SCALE: lambda c: oneflow.mul(c, SCALAR),
    TRIAD: lambda b, c: oneflow.add(b, c, alpha=SCALAR),
}


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: oneflow.device,
    dtype: oneflow.dtype,
) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`."""
    tensors = [oneflow.tensor(array, dtype=dtype, device=device) for array in arrays]
    if name == MATMUL:
        swapped = zip(tensors, transposed)
        tensors = [tensor.transpose(-1, -2) if swap else tensor for tensor, swap in swapped]
    function = FUNCTIONS[name]
    held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(run, lambda: held.float().numpy(), str(held.dtype).replace("oneflow.", ""))
