"""Single operations, called eagerly. Each run writes to the array of the previous one. On a CPU a
new array would be pages that the kernel fills with zeros, in some of the calls or in all."""

from __future__ import annotations

import math
from typing import Any, Callable, Sequence

import torch
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

FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    MATMUL: torch.matmul,
    ADD: torch.add,
    MULTIPLY: torch.mul,
    EXP: torch.exp,
    SCALE: lambda c, **out: torch.mul(c, SCALAR, **out),
    TRIAD: lambda b, c, **out: torch.add(b, c, alpha=SCALAR, **out),
}


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: torch.device,
    dtype: torch.dtype,
) -> Operation:
    """Prepare a single operation; see :class:`harness.operations.SingleOperations`."""
    tensors = [torch.from_numpy(array).to(device, dtype) for array in arrays]
    if name == MATMUL:
        swapped = zip(tensors, transposed, strict=True)
        tensors = [tensor.transpose(-1, -2) if swap else tensor for tensor, swap in swapped]
    function = FUNCTIONS[name]
    with torch.no_grad():
        held = function(*tensors).fill_(math.nan)  # which is seen where nothing is written
    return Operation(
        lambda: function(*tensors, out=held),
        lambda: held.float().cpu().numpy(),
        str(held.dtype).removeprefix("torch."),
    )
