"""Computation beside an asynchronous all-reduce that is waited for afterwards, as
DistributedDataParallel does with its buckets."""

from __future__ import annotations

from typing import Any, Sequence

import torch
import torch.distributed as dist
from harness.overlapping import Overlapped

from .operations import FUNCTIONS


def overlapped(
    name: str,
    arrays: Sequence[Any],
    count: int,
    message: Any,
    device: torch.device,
    dtype: torch.dtype,
) -> Overlapped:
    """Prepare computation and all-reduce; see :class:`harness.overlapping.Overlapping`."""
    function = FUNCTIONS[name]
    tensors = [torch.from_numpy(array).to(device, dtype) for array in arrays]
    buffer = torch.from_numpy(message).to(device)
    held, computed = buffer.clone(), function(*tensors)

    def compute() -> None:
        for _ in range(count):
            function(*tensors, out=computed)

    def communicate() -> None:
        dist.all_reduce(held, async_op=True).wait()

    def both() -> None:
        work = dist.all_reduce(held, async_op=True)
        compute()
        work.wait()

    return Overlapped(
        compute, communicate, both, lambda: held.copy_(buffer),
        lambda: computed.float().cpu().numpy(), lambda: held.cpu().numpy(),
        str(computed.dtype).replace("torch.", ""),
    )  # fmt: skip
