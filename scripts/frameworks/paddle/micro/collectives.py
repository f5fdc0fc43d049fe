"""The collectives of paddle.distributed, on tensors of their own."""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import paddle
import paddle.distributed as dist
from harness.adapter import RankContext
from harness.communication import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    REDUCE,
    REDUCE_SCATTER,
    SEND_RECEIVE,
    CollectiveOperation,
    MatmulCollective,
)


def collective(
    operation: str, array: Any, dtype: str, rank_context: RankContext
) -> CollectiveOperation:
    """Prepare a collective; see :class:`harness.communication.Communication`."""
    ranks = rank_context.world_size
    contribution = paddle.to_tensor(array).astype(dtype)
    held = contribution.clone()
    length = {ALL_GATHER: ranks * len(array), REDUCE_SCATTER: len(array) // ranks}
    received = paddle.zeros([length.get(operation, len(array))], dtype)

    def send() -> None:
        dist.send(held, (rank_context.rank + 1) % ranks)

    def receive() -> None:
        dist.recv(received, (rank_context.rank - 1) % ranks)

    def send_and_receive() -> None:
        # in turns, for a send waits until it is received
        for step in (send, receive) if rank_context.rank % 2 == 0 else (receive, send):
            step()

    parts: List[Any] = []

    def gather() -> None:
        parts.clear()
        dist.all_gather(parts, held)

    runs: Dict[str, Callable[[], Any]] = {
        ALL_REDUCE: lambda: dist.all_reduce(held),
        REDUCE: lambda: dist.reduce(held, 0),
        BROADCAST: lambda: dist.broadcast(held, 0),
        ALL_GATHER: gather,
        REDUCE_SCATTER: lambda: dist.reduce_scatter(received, held),
        ALL_TO_ALL: lambda: dist.alltoall_single(received, held),
        SEND_RECEIVE: send_and_receive,
    }
    in_place = operation in (ALL_REDUCE, REDUCE, BROADCAST)

    def reset() -> None:
        held.copy_(contribution, True)
        received.zero_()

    def result() -> Any:
        if operation == ALL_GATHER:
            return paddle.concat(parts).astype("float32").numpy()
        return (held if in_place else received).astype("float32").numpy()

    return CollectiveOperation(reset, runs[operation], result)


def sharded_matmul(left: Any, right: Any, operation: str, dtype: str) -> MatmulCollective:
    """Prepare a matmul and the collective of its parts; see
    :class:`harness.communication.ShardedMatmuls`."""
    a, b = (paddle.to_tensor(array).astype(dtype) for array in (left, right))
    part = whole = paddle.matmul(a, b)

    def matmul() -> None:
        nonlocal part
        part = paddle.matmul(a, b)

    def communicate() -> None:
        nonlocal whole
        if operation == ALL_REDUCE:
            dist.all_reduce(part)
            whole = part
        else:
            parts: List[Any] = []
            dist.all_gather(parts, part)
            whole = paddle.concat(parts, 1)

    def both() -> None:
        matmul()
        communicate()

    return MatmulCollective(
        matmul, communicate, both, lambda: whole.astype("float32").numpy(), part.dtype.name.lower()
    )
