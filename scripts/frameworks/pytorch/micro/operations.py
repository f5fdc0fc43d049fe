"""Single operations, called eagerly, the results kept until the next."""

from __future__ import annotations

from typing import Any, Sequence

import torch
from harness.operations import ADD, EXP, MATMUL, Operation, Transposed

FUNCTIONS = {MATMUL: torch.matmul, ADD: torch.add, EXP: torch.exp}


def operation(
    name: str,
    arrays: Sequence[Any],
    transposed: Transposed,
    device: torch.device,
    dtype: torch.dtype,
) -> Operation:
    """See :class:`harness.operations.SingleOperations`."""
    tensors = [torch.from_numpy(array).to(device, dtype) for array in arrays]
    if name == MATMUL:
        swapped = zip(tensors, transposed, strict=True)
        tensors = [one.transpose(-1, -2) if swap else one for one, swap in swapped]
    function = FUNCTIONS[name]
    with torch.no_grad():
        held = function(*tensors)

    def run() -> None:
        nonlocal held
        held = function(*tensors)

    return Operation(
        run, lambda: held.float().cpu().numpy(), str(held.dtype).removeprefix("torch.")
    )
