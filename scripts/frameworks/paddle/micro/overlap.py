"""Computation beside an all-reduce whose handle is waited for afterwards."""

from __future__ import annotations

from typing import Any, Sequence

import paddle
import paddle.distributed as dist
from harness.overlapping import Overlapped

from .operations import function_of


def overlapped(
    name: str,
    arrays: Sequence[Any],
    count: int,
    message: Any,
    dtype: str,
) -> Overlapped:
    """Prepare computation and all-reduce; see :class:`harness.overlapping.Overlapping`."""
    function = function_of(name)
    tensors = [paddle.to_tensor(array).astype(dtype) for array in arrays]
    buffer = paddle.to_tensor(message)
    held, computed = buffer.clone(), function(*tensors)

    def compute() -> None:
        nonlocal computed
        for _ in range(count):
            computed = function(*tensors)

    def communicate() -> None:
        dist.all_reduce(held, sync_op=False).wait()

    def both() -> None:
        work = dist.all_reduce(held, sync_op=False)
        compute()
        work.wait()

    return Overlapped(
        compute, communicate, both, lambda: held.copy_(buffer, True),
        lambda: computed.astype("float32").numpy(), held.numpy, computed.dtype.name.lower(),
    )  # fmt: skip
