"""Products beside an all-reduce that is waited for behind them, as DistributedDataParallel has its
buckets."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from harness.overlapping import Overlapped


def overlapped(
    left: Any, right: Any, products: int, message: Any, device: torch.device, dtype: torch.dtype
) -> Overlapped:
    """See :class:`harness.overlapping.Overlapping`."""
    a, b = (torch.from_numpy(array).to(device, dtype) for array in (left, right))
    own = torch.from_numpy(message).to(device)
    held, product = own.clone(), a @ b

    def compute() -> None:
        for _ in range(products):
            torch.matmul(a, b, out=product)

    def communicate() -> None:
        dist.all_reduce(held, async_op=True).wait()

    def both() -> None:
        work = dist.all_reduce(held, async_op=True)
        compute()
        work.wait()

    return Overlapped(
        compute, communicate, both, lambda: held.copy_(own),
        lambda: product.float().cpu().numpy(), lambda: held.cpu().numpy(),
        str(product.dtype).replace("torch.", ""),
    )  # fmt: skip
