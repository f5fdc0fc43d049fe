"""Products beside an all-reduce that is waited for behind them, by the handle that Paddle gives."""

from __future__ import annotations

from typing import Any

import paddle
import paddle.distributed as dist
from harness.overlapping import Overlapped


def overlapped(left: Any, right: Any, products: int, message: Any, dtype: str) -> Overlapped:
    """See :class:`harness.overlapping.Overlapping`."""
    a, b = (paddle.to_tensor(array).astype(dtype) for array in (left, right))
    own = paddle.to_tensor(message)
    held, product = own.clone(), paddle.matmul(a, b)

    def compute() -> None:
        nonlocal product
        for _ in range(products):
            product = paddle.matmul(a, b)

    def communicate() -> None:
        dist.all_reduce(held, sync_op=False).wait()

    def both() -> None:
        work = dist.all_reduce(held, sync_op=False)
        compute()
        work.wait()

    return Overlapped(
        compute, communicate, both, lambda: held.copy_(own, True),
        lambda: product.astype("float32").numpy(), held.numpy, product.dtype.name.lower(),
    )  # fmt: skip
